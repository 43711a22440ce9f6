//! A stream that stops reading while thousands of changes happen.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service as pb;
use pb::discovery::v3::DeltaDiscoveryRequest;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;

use super::served::Served;
use super::wire::{subscribe, wire};
use super::world::{CDS, World};

/// Clusters, and the bytes of each: together more than the windows of a connection take.
const CLUSTERS: usize = 200;
const BYTES: usize = 16 << 10;

/// How many changes, and for how long nobody reads at least.
fn size() -> (usize, Duration) {
    if std::env::var_os("AETHER_IT_LONG").is_some() {
        (10_000, Duration::from_mins(1))
    } else {
        (1_000, Duration::ZERO)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s24_thousands_of_changes_that_a_stream_does_not_read_cost_one_answer() {
    let (changes, pause) = size();
    let body = |round: usize| format!("{round}:{}", "x".repeat(BYTES));
    let name = |n: usize| format!("c{:03}", n % CLUSTERS);
    let mut world = World::default();
    for n in 0..CLUSTERS {
        world.set(CDS, &name(n), &body(0));
    }
    let served = Served::start(&mut world, false).await;
    let open = async || {
        let mut client = Ads::new(served.channel().await);
        let (say, requests) = wire();
        say.send(subscribe(CDS, &[])).unwrap();
        (say, client.delta_aggregated_resources(requests).await.unwrap().into_inner())
    };
    let (slow_say, mut slow) = open().await;
    let (say, mut fast) = open().await;
    let ack = |nonce: String| DeltaDiscoveryRequest {
        type_url: CDS.type_url().into(),
        response_nonce: nonce,
        ..Default::default()
    };
    let first = fast.message().await.unwrap().unwrap();
    assert_eq!(first.resources.len(), CLUSTERS);
    say.send(ack(first.nonce)).unwrap();
    let begun = Instant::now();
    let (mut took, mut snapshots) = (Vec::with_capacity(changes), Vec::<Weak<_>>::new());
    for round in 1..=changes {
        let snapshot = world.set(CDS, &name(round), &body(round)).snapshot();
        snapshots.push(Arc::downgrade(&snapshot));
        let changed = Instant::now();
        served.store.publish(snapshot);
        let heard = fast.message().await.unwrap().unwrap();
        took.push(changed.elapsed());
        let [resource] = heard.resources.as_slice() else { panic!("{}", heard.resources.len()) };
        assert_eq!(resource.name, name(round), "the other one hears each change, and at once");
        say.send(ack(heard.nonce)).unwrap();
    }
    tokio::time::sleep(pause.saturating_sub(begun.elapsed())).await;
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    println!("{changes} changes in {:?}; the other stream's p99 is {p99:?}", begun.elapsed());
    assert!(p99 < Duration::from_millis(500), "{p99:?}");
    // What is still held of all those snapshots is the newest, and what each stream sends from.
    let alive = snapshots.iter().filter(|snapshot| snapshot.strong_count() > 0).count();
    assert!((1..=4).contains(&alive), "{alive} of {changes} snapshots are held");

    let old = slow.message().await.unwrap().unwrap();
    assert!(old.resources.iter().all(|resource| starts(resource, 0)), "what it was sent before");
    slow_say.send(ack(old.nonce)).unwrap();
    let new = slow.message().await.unwrap().unwrap();
    slow_say.send(ack(new.nonce)).unwrap();
    let mut newest: Vec<usize> = (changes + 1 - CLUSTERS..=changes).collect();
    newest.sort_by_key(|round| name(*round));
    assert_eq!(new.resources.len(), CLUSTERS);
    let mut resources = new.resources;
    resources.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(resources.iter().zip(newest).all(|(resource, round)| starts(resource, round)));
    let more = tokio::time::timeout(Duration::from_millis(300), slow.message()).await;
    assert!(more.is_err(), "one answer holds it all");
    drop((slow_say, slow, say, fast));
    served.quiet().await;
}

/// Whether a resource is that of a round.
fn starts(resource: &pb::discovery::v3::Resource, round: usize) -> bool {
    let value = resource.resource.as_ref().map(|any| any.value.as_slice()).unwrap_or_default();
    value.starts_with(format!("{round}:").as_bytes())
}
