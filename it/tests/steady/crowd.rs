//! Twenty proxies and one server, while services come, change and go at random.

use std::time::Duration;

use fastrand::Rng;
use it::busy::{Busy, NAMESPACE, Speaks};
use it::envoy::DRAIN_TIME;
use it::loaded::{Loaded, agrees};
use it::world::Object;
use tokio::time::{Instant, sleep};

use super::storm::{self, HTTP, MIXED, TCP, TCP_TWICE};

/// How many proxies, half of them over each protocol.
const PROXIES: usize = 20;
/// How many services there are at most, besides the twenty that stay.
const SERVICES: u8 = 15;
/// How long after one another the changes come, in milliseconds.
const GAP: std::ops::RangeInclusive<u64> = 5..=60;
/// How long the slowest proxy may take after the last change until all of it is loaded and warm.
const SETTLED: Duration = Duration::from_mins(1);

/// How many changes.
fn changes() -> usize {
    if std::env::var_os("AETHER_IT_LONG").is_some() { 500 } else { 100 }
}

/// Makes one change, and notes whether the file of the service is there.
fn change(busy: &Busy, rng: &mut Rng, there: &mut [bool]) -> anyhow::Result<()> {
    let n = rng.usize(..there.len());
    let file = format!("crowd-{n}");
    if there[n] && rng.u8(..4) == 0 {
        there[n] = false;
        return busy.world.remove(&file);
    }
    there[n] = true;
    let shape = [HTTP, TCP, TCP_TWICE, MIXED][rng.usize(..4)];
    let endpoints: Vec<u8> = (1..=5).filter(|_| rng.bool()).collect();
    let mut objects = storm::service("crowd", &file, (u8::try_from(n)? + 1, shape), &endpoints);
    if rng.u8(..5) == 0 {
        let named = format!("called-{}", rng.u8(..3));
        let service = objects.remove(0).annotation("aether.io/service", &named);
        objects.insert(0, service);
    }
    busy.world.put(&file, &objects)
}

#[tokio::test]
async fn twenty_proxies_through_random_changes_are_warm_and_refuse_nothing() {
    let callers: Vec<Speaks> = [Speaks::Delta, Speaks::Sotw].repeat(PROXIES / 2);
    let busy = Busy::start_with(&callers, &[DRAIN_TIME, "3"]).await.unwrap();
    busy.world.put("crowd", &[Object::namespace("crowd")]).unwrap();
    let seed = std::env::var("AETHER_IT_CROWD").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    let mut there = [false; SERVICES as usize];
    let begun = Instant::now();
    for _ in 0..changes() {
        change(&busy, &mut rng, &mut there).unwrap();
        sleep(Duration::from_millis(rng.u64(GAP))).await;
    }
    let last = Instant::now();
    println!("{} changes in {:.1?}, AETHER_IT_CROWD={seed}", changes(), last - begun);
    for (n, caller) in busy.callers.iter().enumerate() {
        let node = format!("pod/{NAMESPACE}/caller-{n}");
        let rendered = Loaded::rendered(busy.world.path(), &node, &[]).unwrap();
        let left = (last + SETTLED).saturating_duration_since(Instant::now());
        let agreed = agrees(&caller.envoy, &rendered, left).await;
        agreed.unwrap_or_else(|error| {
            let log = it::process::tail(&busy.aether.log(), 40);
            panic!("{node}, AETHER_IT_CROWD={seed}: {error:#}\n{log}")
        });
        let updates = caller.envoy.stat("cluster_manager.cds.update_success").await.unwrap();
        assert!(updates > 10, "{node} heard of {updates} changes of clusters alone");
    }
    println!("all {PROXIES} agree with render, warm, {:.1?} after the last change", last.elapsed());
}
