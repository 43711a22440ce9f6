//! Services that are gone almost before they are there: whatever is made of it on the way, nothing is refused, nothing
//! stays half-loaded, and nobody who calls another service notices.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use it::aether::Over;
use it::busy::{Busy, Caller, NAMESPACE, Speaks};
use it::counters::{Counters, Holdings};
use it::envoy::{DRAIN_TIME, Envoy};
use it::loaded::{Loaded, agrees};
use it::world::{Object, ServedPort, served};
use tokio::time::{Instant, sleep_until};

/// How long after the last change an Envoy may take until all of it is loaded and warm.
const SETTLED: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(20);

/// How many Services come in a round, and how long after one another, in milliseconds.
const ROUNDS: [(u8, std::ops::RangeInclusive<u64>); 5] =
    [(20, 60..=100), (50, 20..=50), (100, 5..=20), (100, 5..=5), (30, 5..=100)];
/// How long one lives, in milliseconds, unless it stays.
const LIFE: std::ops::RangeInclusive<u64> = 5..=100;
/// One in so many stays, until the next round has one of its name.
const STAYS: u8 = 7;

const SHAPES: [&[ServedPort<'_>]; 3] = [
    &[(80, "http", 8080)],
    &[(5432, "postgres", 5432)],
    &[(80, "http", 8080), (9000, "echo", 9000)],
];

/// What no proxy may ever count, by the ends of the names.
const NEVER: [&str; 7] = [
    "update_rejected",
    "update_failure",
    "init_fetch_timeout",
    "listener_create_failure",
    "downstream_cx_no_route",
    "no_filter_chain_match",
    "downstream_rq_5xx",
];

/// A file that is written or removed, at a time since the begin of the round.
struct Step {
    at: Duration,
    file: String,
    objects: Option<[Object; 2]>,
}

/// The steps of a round, in their order.
fn steps(rng: &mut Rng, count: u8, gaps: std::ops::RangeInclusive<u64>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = Duration::ZERO;
    for n in 0..count {
        at += Duration::from_millis(rng.u64(gaps.clone()));
        let (name, ports) = (format!("brief-{n}"), SHAPES[rng.usize(..SHAPES.len())]);
        let ip = format!("10.96.20.{n}");
        let endpoint = [10, 244, 200, rng.u8(1..)].into();
        let objects = served(&format!("churn/{name}"), &[&ip], ports, endpoint).unwrap();
        steps.push(Step { at, file: name.clone(), objects: Some(objects) });
        if !n.is_multiple_of(STAYS) {
            let gone = at + Duration::from_millis(rng.u64(LIFE));
            steps.push(Step { at: gone, file: name, objects: None });
        }
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// Takes the steps in their time; when the last one was taken.
async fn churn(busy: &Busy, steps: Vec<Step>) -> Result<Instant> {
    let begun = Instant::now();
    for Step { at, file, objects } in steps {
        sleep_until(begun + at).await;
        match objects {
            Some(objects) => busy.world.put(&file, &objects)?,
            None => busy.world.remove(&file)?,
        }
    }
    Ok(Instant::now())
}

/// Waits until both callers have loaded what `render` says of the folder, all of it warm; how long that took.
async fn settle(busy: &Busy, last: Instant) -> Result<[Duration; 2]> {
    let rendered =
        |n| Loaded::rendered(busy.world.path(), &format!("pod/{NAMESPACE}/caller-{n}"), &[]);
    let rendered = [rendered(0)?, rendered(1)?];
    let settles = async |n: usize| {
        let Caller { envoy, speaks, .. } = &busy.callers[n];
        let left = (last + SETTLED).saturating_duration_since(Instant::now());
        agrees(envoy, &rendered[n], left).await.with_context(|| format!("{speaks:?}"))?;
        anyhow::Ok(last.elapsed())
    };
    let (delta, sotw) = tokio::join!(settles(0), settles(1));
    Ok([delta?, sotw?])
}

/// The versions of what an Envoy holds: over delta of each cluster, over the state of the world of the last answers
/// about clusters and listeners. (A listener whose chains alone changed shows its first version for ever; what
/// listeners and endpoints hold is compared with `render`.)
async fn versions(envoy: &Envoy, speaks: Speaks) -> Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    if speaks == Speaks::Sotw {
        for name in ["cluster_manager.cds.version", "listener_manager.lds.version"] {
            let version = envoy.stat(name).await?;
            ensure!(version != 0, "{name} is 0");
            versions.insert(name.to_owned(), version.to_string());
        }
        return Ok(versions);
    }
    let holds = Holdings::of(envoy).await?;
    for name in holds.names("cluster") {
        let key = format!("cluster {name}");
        let version = holds.get(&key).and_then(|one| one.get("version_info")?.as_str());
        versions.insert(key.clone(), version.with_context(|| format!("{key}: none"))?.to_owned());
    }
    ensure!(versions.len() > 30, "{versions:?}");
    Ok(versions)
}

/// An Envoy that starts now, as this caller's, has it all in the same versions.
async fn is_current(busy: &Busy, n: usize) -> Result<()> {
    let Caller { envoy, speaks, .. } = &busy.callers[n];
    let (over, options): (_, &[&str]) = match speaks {
        Speaks::Delta => (Over::Socket, &[]),
        Speaks::Sotw => (Over::Tcp, &["--protocol", "sotw"]),
    };
    let node = format!("pod/{NAMESPACE}/caller-{n}");
    let pod = busy.net.pod()?;
    let mut fresh = Envoy::start(&pod, &busy.aether.bootstrap(&node, over, options)?)?;
    fresh.ready(SOON).await?;
    let rendered = Loaded::rendered(busy.world.path(), &node, &[])?;
    agrees(&fresh, &rendered, SOON).await?;
    let (old, new) = (versions(envoy, *speaks).await?, versions(&fresh, *speaks).await?);
    let differs: Vec<_> =
        new.iter().filter(|(key, version)| old.get(*key) != Some(version)).collect();
    ensure!(old == new, "{speaks:?}: {differs:?} now, of {old:#?}");
    Ok(())
}

#[tokio::test]
async fn services_that_come_and_go_at_once_leave_nothing_behind() {
    let callers = [Speaks::Delta, Speaks::Sotw];
    let busy = Busy::start_with(&callers, &[DRAIN_TIME, "3"]).await.unwrap();
    busy.world.put("churn", &[Object::namespace("churn")]).unwrap();
    let loads = busy.loads().await.unwrap();
    let mut before = Vec::new();
    for caller in &busy.callers {
        before.push(Counters::of(&caller.envoy, "").await.unwrap());
    }
    let seed = std::env::var("AETHER_IT_CHURN").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    for (round, (count, gaps)) in ROUNDS.into_iter().enumerate() {
        let last = churn(&busy, steps(&mut rng, count, gaps)).await.unwrap();
        let settled = settle(&busy, last).await.unwrap_or_else(|error| {
            let log = it::process::tail(&busy.aether.log(), 40);
            panic!("round {round} of AETHER_IT_CHURN={seed}: {error:#}\n{log}")
        });
        println!("round {round}: all loaded and warm within {settled:.1?}");
    }
    for (n, (caller, before)) in busy.callers.iter().zip(&before).enumerate() {
        is_current(&busy, n).await.unwrap();
        let now = Counters::of(&caller.envoy, "").await.unwrap();
        let risen = now.since(before);
        let ours = |name: &str| !name.starts_with("cluster.aether_xds.");
        let noticed: BTreeMap<_, _> = risen
            .iter()
            .filter(|(name, _)| ours(name) && NEVER.iter().any(|never| name.ends_with(never)))
            .collect();
        assert!(noticed.is_empty(), "{:?}: {noticed:?}", caller.speaks);
        // It did come through, at least a good part of it.
        let (added, removed) =
            (risen["cluster_manager.cluster_added"], risen["cluster_manager.cluster_removed"]);
        println!("{:?}: {added} clusters came and {removed} went", caller.speaks);
        assert!(added > 200 && removed > 100, "{:?}: {added} {removed}", caller.speaks);
    }
    busy.flawless(loads).await.unwrap();
}
