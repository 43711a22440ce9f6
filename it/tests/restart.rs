//! The server goes and comes back: proxies go on as they are, and hear of what changed meanwhile, and of nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use it::busy::{Busy, Caller, NAMESPACE, Speaks};
use it::client;
use it::counters::Holdings;
use it::eventually;
use it::load::Work;
use it::world::Object;

const SOON: Duration = Duration::from_secs(30);
/// Whether the stream to aether is up.
const CONNECTED: &str = "control_plane.connected_state";

const CDS: &str = "cluster_manager.cds.update_success";
const LDS: &str = "listener_manager.lds.update_success";
const RDS: &str = "http.cap_http.rds.cap_http.busy.update_success";
/// The tables that an Envoy made of what it was told; and, on delta streams, those that it made of virtual hosts.
const RELOADS: &str = "http.cap_http.rds.cap_http.busy.config_reload";
const VHDS_RELOADS: &str = "http.cap_http.rds.vhds.cap_http.busy.config_reload";
const VHDS: &str = "http.cap_http.rds.vhds.cap_http.busy.update_success";
const CDS_RELOADS: &str = "cluster_manager.cds.config_reload";
const ADDED: &str = "cluster_manager.cluster_added";
const REMOVED: &str = "cluster_manager.cluster_removed";

/// A service that nobody calls, with one endpoint.
fn other(name: &str, ip: u8, protocol: &str, endpoint: u8) -> [Object; 2] {
    let service = Object::service(NAMESPACE, name, &format!("10.96.5.{ip}"));
    let slice = Object::slice(NAMESPACE, name, "1", false).target("it", 8080);
    let endpoint = IpAddr::from([10, 244, 200, endpoint]);
    [service.port("it", 80, protocol), slice.endpoint(endpoint)]
}

/// Waits until a counter of a caller's proxy has this value.
async fn counts(caller: &Caller, name: &str, wanted: u64) {
    let ask = || async {
        let value = caller.envoy.stat(name).await?;
        anyhow::ensure!(value == wanted, "{value} and not {wanted}");
        Ok(())
    };
    let done = eventually(name, SOON, ask).await;
    done.unwrap_or_else(|error| panic!("{:?}: {error:#}", caller.speaks));
}

/// Calls every HTTP service on a new connection.
async fn newcomers_are_served(busy: &Busy, caller: &Caller) {
    for work in busy.work() {
        if let Work::Http { address, host, body } = work {
            let get = async move { client::get(address, &host, "/").await };
            assert_eq!(caller.pod.run(get).await.unwrap().text(), body);
        }
    }
}

#[tokio::test]
async fn killed_under_load_and_started_again_it_replaces_nothing() {
    let mut busy = Busy::start(&[Speaks::Delta, Speaks::Sotw]).await.unwrap();
    let loads = busy.loads().await.unwrap();
    let mut before = Vec::new();
    for caller in &busy.callers {
        let holdings = Holdings::of(&caller.envoy).await.unwrap();
        before.push((holdings, caller.told().await.unwrap()));
    }

    busy.aether.kill().unwrap();
    for (caller, (holdings, _)) in busy.callers.iter().zip(&before) {
        counts(caller, CONNECTED, 0).await;
        newcomers_are_served(&busy, caller).await;
        let now = Holdings::of(&caller.envoy).await.unwrap();
        assert_eq!(now.differences(holdings), BTreeSet::new(), "{:?}", caller.speaks);
    }
    busy.aether.restart().unwrap();
    for (caller, (holdings, told)) in busy.callers.iter().zip(&before) {
        counts(caller, CONNECTED, 1).await;
        if caller.speaks == Speaks::Sotw {
            // It is told everything again, since it cannot say what it has; and nothing comes of it.
            for name in [CDS, LDS, RDS] {
                counts(caller, name, told.get(name) + 1).await;
            }
            let now = Holdings::of(&caller.envoy).await.unwrap();
            assert_eq!(now.differences(holdings), BTreeSet::new());
        }
    }

    // What is told after a restart comes after all that the restart itself brought.
    busy.world.put("after", &other("after", 1, "http", 1)).unwrap();
    let own = "cluster.http_after.busy.aether.internal.update_success";
    for (caller, (holdings, told)) in busy.callers.iter().zip(&before) {
        // A cluster counts the answers about its endpoints.
        let clusters = holdings.names("cluster").into_iter().filter(|name| name.contains(".busy."));
        let endpoints: Vec<String> = clusters
            .map(|name| format!("cluster.{}.update_success", name.replace(':', "_")))
            .collect();
        let mut expected = vec![(own, 1), (ADDED, 1), (CDS_RELOADS, 1), (RELOADS, 1)];
        match caller.speaks {
            Speaks::Delta => expected.extend([(CDS, 1), (VHDS, 1), (VHDS_RELOADS, 1)]),
            Speaks::Sotw => {
                expected.extend([(CDS, 2), (LDS, 1), (RDS, 2)]);
                expected.extend(endpoints.iter().map(|name| (name.as_str(), 1)));
            }
        }
        caller.is_told(told, &expected).await.unwrap();
        let now = Holdings::of(&caller.envoy).await.unwrap();
        let changed = [
            "cluster http:after.busy.aether.internal",
            "endpoints busy/after:80",
            "routes cap_http.busy",
        ];
        assert_eq!(now.differences(holdings), changed.map(str::to_owned).into());
    }
    busy.flawless(loads).await.unwrap();
}

/// A file; what is in it now, if it is there; the resources that change; and what the proxy is told.
type Row<'a> = (&'a str, Option<[Object; 2]>, &'a [&'a str], Vec<(&'a str, u64)>);

#[tokio::test]
async fn what_changed_while_it_was_down_comes_alone() {
    let mut busy = Busy::start(&[Speaks::Delta]).await.unwrap();
    busy.world.put("moves", &other("moves", 1, "http", 1)).unwrap();
    busy.world.put("raw", &other("raw", 2, "postgres", 1)).unwrap();
    let eds = |name: &str| format!("cluster.{name}.update_success");
    let moves = eds("http_moves.busy.aether.internal");
    let fresh = eds("http_fresh.busy.aether.internal");
    for cluster in [&moves, &eds("tcp_raw.busy.aether.internal_18081")] {
        counts(&busy.callers[0], cluster, 1).await;
    }
    counts(&busy.callers[0], "listener_manager.listener_in_place_updated", 1).await;
    let mut told = busy.callers[0].told().await.unwrap();

    let hosts = [(VHDS, 1), (VHDS_RELOADS, 1), (RELOADS, 1)];
    let chains = [
        (LDS, 1),
        ("listener_manager.listener_in_place_updated", 1),
        ("listener_manager.listener_modified", 1),
        ("listener_manager.total_filter_chains_draining", 1),
    ];
    let added = [&[(CDS, 1), (CDS_RELOADS, 1), (ADDED, 1), (&fresh, 1)][..], &hosts].concat();
    let down: [Row<'_>; 5] = [
        ("unchanged", None, &[], vec![]),
        (
            "moves",
            Some(other("moves", 1, "http", 2)),
            &["endpoints busy/moves:80"],
            vec![(&moves, 1)],
        ),
        (
            "fresh",
            Some(other("fresh", 3, "http", 1)),
            &[
                "cluster http:fresh.busy.aether.internal",
                "endpoints busy/fresh:80",
                "routes cap_http.busy",
            ],
            added,
        ),
        (
            "raw",
            None,
            &[
                "cluster tcp:raw.busy.aether.internal:18081",
                "cluster tcp:raw.busy.aether.internal:80",
                "endpoints busy/raw:80",
                "listener capture_busy_caller-0",
            ],
            [&[(CDS, 1), (REMOVED, 2)][..], &chains].concat(),
        ),
        (
            "moves",
            None,
            &[
                "cluster http:moves.busy.aether.internal",
                "endpoints busy/moves:80",
                "routes cap_http.busy",
            ],
            [&[(CDS, 1), (REMOVED, 1)][..], &hosts].concat(),
        ),
    ];
    for (file, objects, changes, expected) in down {
        let holdings = Holdings::of(&busy.callers[0].envoy).await.unwrap();
        busy.aether.kill().unwrap();
        counts(&busy.callers[0], CONNECTED, 0).await;
        match objects {
            Some(objects) => busy.world.put(file, &objects).unwrap(),
            None if file == "unchanged" => {}
            None => busy.world.remove(file).unwrap(),
        }
        busy.aether.restart().unwrap();
        let caller = &busy.callers[0];
        counts(caller, CONNECTED, 1).await;
        told = caller.is_told(&told, &expected).await.unwrap();
        let now = Holdings::of(&caller.envoy).await.unwrap();
        assert_eq!(now.differences(&holdings), changes.iter().map(ToString::to_string).collect());
    }
    // And nothing else comes later.
    busy.world.put("fresh", &other("fresh", 3, "http", 2)).unwrap();
    busy.callers[0].is_told(&told, &[(&fresh, 1)]).await.unwrap();
}

#[tokio::test]
async fn told_to_stop_it_drains_in_its_time_and_stops_cleanly() {
    let mut busy = Busy::start(&[Speaks::Delta, Speaks::Sotw]).await.unwrap();
    let loads = busy.loads().await.unwrap();
    let begun = Instant::now();
    let status = busy.aether.stop(SOON).unwrap();
    let took = begun.elapsed();
    println!("stopped after {took:?}");
    assert_eq!(status.code(), Some(0), "{}", busy.aether.log());
    // `--xds-drain` is 3 s, over which the streams end one by one.
    assert!(took < Duration::from_secs(4), "{took:?}\n{}", busy.aether.log());
    assert!(!busy.aether.socket().exists());
    // Port and path are free at once.
    busy.aether.restart().unwrap();
    busy.aether.serving(SOON).await.unwrap();
    busy.world.put("after", &other("after", 1, "http", 1)).unwrap();
    for caller in &busy.callers {
        counts(caller, "cluster.http_after.busy.aether.internal.update_success", 1).await;
    }
    busy.flawless(loads).await.unwrap();
}
