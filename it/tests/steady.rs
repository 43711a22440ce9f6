//! Nobody else notices: what changes of some services cost the traffic of all others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "steady/crowd.rs"]
mod crowd;
#[path = "steady/storm.rs"]
mod storm;
#[path = "steady/told.rs"]
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use it::aether;
use it::busy::{Busy, NAMESPACE, Speaks};
use it::client;
use it::counters::{Counters, Holdings};
use it::envoy::DRAIN_TIME;
use it::eventually;
use it::latency;
use it::world::Object;

const SOON: Duration = Duration::from_secs(20);

/// Counters that rise with every answer that a proxy takes in, and with nothing else.
const UPDATES: &str = "update_success";

/// Chains that go on until their drain time is over.
const DRAINING: &str = "listener_manager.total_filter_chains_draining";

/// What no proxy may ever count while the services that it calls stay as they are, by the ends of the names.
const NEVER: [&str; 19] = [
    "update_rejected",
    "update_failure",
    "listener_added",
    "listener_removed",
    "listener_stopped",
    "listener_create_failure",
    "downstream_cx_drain_close",
    "downstream_cx_total",
    "downstream_cx_destroy",
    "downstream_rq_4xx",
    "downstream_rq_5xx",
    "downstream_cx_no_route",
    "no_filter_chain_match",
    "upstream_rq_retry",
    "upstream_rq_5xx",
    "upstream_cx_connect_fail",
    "upstream_cx_destroy_with_active_rq",
    "upstream_rq_pending_failure_eject",
    "total_listeners_draining",
];

/// What of [`NEVER`] was counted.
fn noticed<'a>(now: &'a Counters, before: &Counters) -> BTreeMap<&'a str, u64> {
    let risen = now.since(before).into_iter();
    // Our own questions, and the stream to aether, are no traffic of the pod's.
    let strange = ["cluster.aether_xds.", "http.admin.", "listener.admin."];
    let risen = risen.filter(|(name, _)| !strange.iter().any(|start| name.starts_with(start)));
    risen.filter(|(name, _)| NEVER.iter().any(|never| name.ends_with(never))).collect()
}

#[tokio::test]
async fn two_hundred_changes_of_others_cost_nobody_anything() {
    // A chain that drains by mistake goes on until the end of the drain time, so that nobody would notice before.
    let callers = [Speaks::Delta, Speaks::Sotw];
    let busy = Busy::start_with(&callers, &[DRAIN_TIME, "3"]).await.unwrap();
    let loads = busy.loads().await.unwrap();
    let mut before = Vec::new();
    for caller in &busy.callers {
        let counters = Counters::of(&caller.envoy, "").await.unwrap();
        before.push((counters, Holdings::of(&caller.envoy).await.unwrap()));
    }

    let changes = storm::changes();
    assert_eq!(changes.len(), 200);
    let begun = std::time::Instant::now();
    for change in &changes {
        let mut seen = Vec::new();
        for caller in &busy.callers {
            seen.push(Counters::of(&caller.envoy, UPDATES).await.unwrap());
        }
        change.apply(&busy).unwrap();
        for (caller, seen) in busy.callers.iter().zip(&seen).filter(|_| change.told) {
            let after = Counters::after(seen, &caller.envoy, UPDATES, SOON).await;
            after.unwrap_or_else(|e| panic!("{:?}: {}: {e:#}", caller.speaks, change.what));
        }
    }
    println!("{} changes in {:?}", changes.len(), begun.elapsed());

    for (n, (caller, (counters, holdings))) in busy.callers.iter().zip(&before).enumerate() {
        let speaks = caller.speaks;
        settled(&busy, n).await;
        caller.envoy.stat_is(DRAINING, SOON, |chains| chains == 0).await.unwrap();
        let now = Counters::of(&caller.envoy, "").await.unwrap();
        assert_eq!(noticed(&now, counters), BTreeMap::new(), "{speaks:?}");
        let refused = now.present().into_keys().filter(|name| name.ends_with("update_rejected"));
        assert_eq!(refused.collect::<Vec<_>>(), Vec::<&str>::new(), "{speaks:?}");
        assert_eq!(now.get("listener.capture.downstream_cx_active"), busy.work().len() as u64);
        let renewed = Holdings::of(&caller.envoy).await.unwrap();
        let ours = |key: &String| key.contains(".busy.") || key.contains("busy/");
        let changed: BTreeSet<_> = renewed.differences(holdings).into_iter().filter(ours).collect();
        assert_eq!(changed, BTreeSet::new(), "{speaks:?}");
        // The changes did arrive, one by one, and chains of others came and went.
        let risen = now.since(counters);
        let in_place = risen["listener_manager.listener_in_place_updated"];
        assert!(in_place > 50, "{speaks:?}: {in_place}");
        assert_eq!(risen["listener_manager.listener_modified"], in_place, "{speaks:?}");
        let heard: u64 = risen.iter().filter(|(k, _)| k.ends_with(UPDATES)).map(|(_, v)| v).sum();
        println!("{speaks:?}: {in_place} listener updates, {heard} answers taken in");
        assert!(heard > 200, "{speaks:?}: {heard}");
    }
    busy.flawless(loads).await.unwrap();
}

/// Waits until a caller's proxy holds the clusters and endpoints that `render` names, and no other.
async fn settled(busy: &Busy, n: usize) {
    let (node, folder) = (format!("pod/{NAMESPACE}/caller-{n}"), busy.world.path());
    let folder = folder.to_str().unwrap();
    let rendered = aether::run(&["render", "--manifests", folder, "--node", &node]).unwrap();
    let rendered: serde_json::Value = serde_json::from_slice(&rendered.stdout).unwrap();
    let names = |list: &str, name: &str| -> BTreeSet<String> {
        let all = rendered[list].as_array().unwrap().iter();
        all.map(|one| one[name].as_str().unwrap().to_owned()).collect()
    };
    let clusters = names("clusters", "name");
    assert!(clusters.len() > 30);
    let endpoints = names("endpoints", "cluster_name");
    let same = || async {
        let holds = Holdings::of(&busy.callers[n].envoy).await?;
        let (has, has_endpoints) = (holds.names("cluster"), holds.names("endpoints"));
        anyhow::ensure!(has == clusters, "{:?}", has.symmetric_difference(&clusters));
        let missing = endpoints.difference(&has_endpoints).collect::<Vec<_>>();
        anyhow::ensure!(missing.is_empty(), "{missing:?}");
        Ok(())
    };
    eventually("what render says", SOON, same).await.unwrap();
}

#[tokio::test]
async fn without_an_endpoint_the_mesh_says_503_and_its_return_heals() {
    let busy = Busy::start(&[Speaks::Delta, Speaks::Sotw]).await.unwrap();
    let loads = busy.loads().await.unwrap();
    let backend = busy.servers.at(7001).unwrap();
    let backend =
        it::backend::Http1Backend::named(busy.servers.netns(), backend, "alive").await.unwrap();
    let service = Object::service("other", "alone", "10.96.4.1")
        .port("web", 80, "http")
        .port("raw", 90, "tcp");
    busy.world.put("alone", &[service]).unwrap();
    let at = busy.servers.v4().unwrap();
    let slice =
        || Object::slice("other", "alone", "1", false).target("web", 7001).target("raw", 7001);
    let unready = serde_json::json!({"ready": false, "serving": false, "terminating": false});
    // Three ways to have none: no endpoint, one that is not ready, no slice at all.
    let none = [Some(slice()), Some(slice().endpoint_that(at, &unready)), None];
    for (n, none) in none.into_iter().enumerate() {
        busy.world.put("alone-endpoints", &[slice().endpoint(at)]).unwrap();
        for caller in &busy.callers {
            answers(caller, "alone.other", |status, body| status == 200 && body == "alive").await;
        }
        match none {
            Some(slice) => busy.world.put("alone-endpoints", &[slice]).unwrap(),
            None => busy.world.remove("alone-endpoints").unwrap(),
        }
        for caller in &busy.callers {
            let by_mesh = |status: u16, body: &str| {
                status == 503
                    && body.starts_with(
                        "aether: answered by the mesh, not by the service (no_healthy_upstream)",
                    )
            };
            answers(caller, "alone.other", by_mesh).await;
            // A raw protocol has no words for it: the connection ends.
            let raw = async { Ok(client::say("10.96.4.1:90".parse()?, b"anyone?\n", 1).await) };
            let raw = caller.pod.run(raw).await.unwrap().unwrap_err();
            let words = format!("{raw:#}");
            assert!(
                words.contains("closed after 0 bytes") || words.contains("reset"),
                "{n}: {words}"
            );
        }
    }
    busy.world.put("alone-endpoints", &[slice().endpoint(at)]).unwrap();
    for caller in &busy.callers {
        answers(caller, "alone.other", |status, body| status == 200 && body == "alive").await;
    }
    assert!(backend.counts().requests() > 0);
    busy.flawless(loads).await.unwrap();
}

/// Waits for such an answer from this host.
async fn answers(
    caller: &it::busy::Caller,
    host: &'static str,
    wanted: impl Fn(u16, &str) -> bool,
) {
    let ask = || async {
        let answer = async move { client::get("10.96.4.1:80".parse()?, host, "/").await };
        let answer = caller.pod.run(answer).await?;
        anyhow::ensure!(wanted(answer.status()?, &answer.text()), "{answer:?}");
        Ok(())
    };
    let done = eventually(host, SOON, ask).await;
    done.unwrap_or_else(|error| panic!("{:?}: {error:#}", caller.speaks));
}

#[tokio::test]
async fn a_changed_endpoint_is_used_soon() {
    for speaks in [Speaks::Delta, Speaks::Sotw] {
        let busy = Busy::start(&[speaks]).await.unwrap();
        let all = latency::of_endpoint_changes(&busy, 100).await.unwrap();
        let [median, late] = [50, 99].map(|percent| all.percentile(percent));
        println!("{speaks:?}: median {median:?}, 99th percentile {late:?}");
        // Debug builds on a machine with other work: the figures that are reported come from `figures`.
        assert!(median < Duration::from_millis(150) && late < Duration::from_secs(1), "{all:?}");
    }
}
