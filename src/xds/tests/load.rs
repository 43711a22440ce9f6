//! The server under load, and the ends of streams: statements 24 to 28.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service as pb;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use pb::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use tonic::Code;
use tonic::transport::Channel;

use super::super::Store;
use super::served::{Served, named};
use super::wire::{ask, subscribe, wire, world};
use super::world::{CDS, EDS, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s25_everything_of_a_stream_dies_with_it() {
    let served = Arc::new(Served::start(&mut world(), false).await);
    // A client that says that it is done, and hears that the server is.
    let mut client = Ads::new(served.channel().await);
    let (say, requests) = wire();
    say.send(ask(CDS, &[])).unwrap();
    let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    assert_eq!(served.stats.streams.load(Relaxed), 1);
    drop(say);
    assert_eq!(stream.message().await.unwrap(), None);
    drop((stream, client));
    served.quiet().await;
    // One that is gone from one moment to the next: its sockets are closed with its runtime.
    let gone = served.clone();
    let client = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let open = runtime.block_on(async {
            let mut client = Ads::new(gone.channel().await);
            let (say, requests) = wire();
            say.send(ask(CDS, &[])).unwrap();
            let stream = client.stream_aggregated_resources(requests).await.unwrap();
            let mut stream = stream.into_inner();
            stream.message().await.unwrap().unwrap();
            (say, stream)
        });
        assert_eq!(gone.stats.streams.load(Relaxed), 1);
        runtime.shutdown_background();
        drop(open);
    });
    client.join().unwrap();
    served.quiet().await;
    assert_eq!(served.stats.opened.load(Relaxed), 2);
}

#[tokio::test]
async fn s25_a_panic_ends_its_stream_alone() {
    let served = Served::start(&mut world(), false).await;
    let mut client = Ads::new(served.channel().await);
    let (say, requests) = wire();
    let bomb = Some(Node { id: "panic".into(), ..Default::default() });
    say.send(DiscoveryRequest { node: bomb, ..ask(CDS, &[]) }).unwrap();
    let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
    assert!(stream.message().await.is_err());
    let (say, requests) = wire();
    say.send(ask(CDS, &[])).unwrap();
    let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    assert_eq!(served.stats.streams.load(Relaxed), 1);
}

#[tokio::test]
async fn s26_large_requests_are_read_and_large_responses_are_sent() {
    let mut world = World::default();
    let big = "x".repeat(3 << 20);
    for name in ["a", "b", "c"] {
        world.set(CDS, name, &big);
    }
    let served = Served::start(&mut world, false).await;
    // Names and versions of a reconnect: 8 MB of them.
    let versions = (0..60_000).map(|i| (format!("{i:0>100}"), "0123456789abcdef".to_string()));
    let request = DeltaDiscoveryRequest {
        initial_resource_versions: versions.collect(),
        ..subscribe(EDS, &["x"])
    };
    let mut client = Ads::new(served.channel().await);
    let (say, requests) = wire();
    say.send(request).unwrap();
    let mut stream = client.delta_aggregated_resources(requests).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().removed_resources, ["x"]);
    // Delta is cut into what a stock client reads.
    say.send(subscribe(CDS, &[])).unwrap();
    for _ in 0..3 {
        let response = stream.message().await.unwrap().unwrap();
        assert_eq!(response.resources.len(), 1);
    }
    // State of the world cannot be, and a stock client refuses it; an Envoy has no limit.
    let mut client = Ads::new(served.channel().await).max_decoding_message_size(64 << 20);
    let (say, requests) = wire();
    say.send(ask(CDS, &[])).unwrap();
    let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
    let response = stream.message().await.unwrap().unwrap();
    assert!(response.resources.len() == 3);
    assert!(response.resources.iter().all(|any| any.value == big.as_bytes()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s24_a_stream_that_does_not_read_delays_no_other_and_hears_the_newest_once() {
    let mut world = World::default();
    // More than its windows take.
    let body = |round: usize| format!("{round}:{}", "x".repeat(1 << 20));
    world.set(CDS, "a", &body(0));
    let served = Served::start(&mut world, false).await;
    let slow_channel = served.channel().await;
    let open = |mut client: Ads<Channel>| async move {
        let (say, requests) = wire();
        say.send(subscribe(CDS, &[])).unwrap();
        (say, client.delta_aggregated_resources(requests).await.unwrap().into_inner())
    };
    let (slow_say, mut slow) = open(Ads::new(slow_channel)).await;
    let (say, mut fast) = open(Ads::new(served.channel().await)).await;
    for round in 1..=50 {
        let response = fast.message().await.unwrap().unwrap();
        let ack = DeltaDiscoveryRequest { response_nonce: response.nonce, ..subscribe(CDS, &[]) };
        say.send(ack).unwrap();
        let began = Instant::now();
        world.set(CDS, "a", &body(round)).publish(&served.store);
        assert!(began.elapsed() < Duration::from_secs(1), "a writer waits for nobody");
    }
    let mut heard = Vec::new();
    while heard.last() != Some(&50) {
        let response = slow.message().await.unwrap().unwrap();
        let value = response.resources[0].resource.clone().unwrap().value;
        let text = String::from_utf8(value).unwrap();
        heard.push(text.split_once(':').unwrap().0.parse::<usize>().unwrap());
        let ack = DeltaDiscoveryRequest { response_nonce: response.nonce, ..subscribe(CDS, &[]) };
        slow_say.send(ack).unwrap();
    }
    assert!(heard.len() <= 2, "{heard:?}");
}

#[tokio::test]
async fn s27_shutdown_ends_streams_in_order() {
    let served = Served::start(&mut world(), false).await;
    let mut client = Ads::new(served.channel().await);
    let (say, requests) = wire();
    say.send(ask(CDS, &[])).unwrap();
    let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    let began = Instant::now();
    let ended = tokio::spawn(served.stop());
    let status = stream.message().await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "shutting down"));
    ended.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s28_many_streams_at_once_are_all_served() {
    let mut world = World::default();
    for i in 0..100 {
        world.service(&format!("service-{i}"), &"x".repeat(300));
    }
    let served = Arc::new(Served::start(&mut world, false).await);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let served = served.clone();
        tasks.spawn(async move {
            let mut client = Ads::new(served.channel().await);
            let (say, requests) = wire();
            say.send(subscribe(CDS, &[])).unwrap();
            let mut stream =
                client.delta_aggregated_resources(requests).await.unwrap().into_inner();
            let response = stream.message().await.unwrap().unwrap();
            let names: Vec<_> = response.resources.iter().map(|r| r.name.as_str()).collect();
            say.send(subscribe(EDS, &names)).unwrap();
            stream.message().await.unwrap().unwrap().resources.len()
        });
    }
    while let Some(count) = tasks.join_next().await {
        assert_eq!(count.unwrap(), 100);
    }
    served.quiet().await;
}

#[tokio::test]
async fn a_store_holds_the_newest() {
    let store = Store::default();
    let mut news = store.subscribe();
    assert!(store.current().is_none());
    let mut world = world();
    world.publish(&store);
    world.publish(&store);
    assert!(news.has_changed().unwrap());
    assert_eq!(news.borrow_and_update().as_ref().unwrap().generation, 2);
    assert_eq!(named(&store), 1);
}
