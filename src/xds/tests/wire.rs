//! The server over real connections, with a stock gRPC client.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service as pb;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use pb::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;
use tonic::transport::Channel;

use super::super::{Kind, Store};
use super::served::{PLANE, Served, named, node};
use super::world::World;

const CDS: Kind = Kind::Cluster;
const EDS: Kind = Kind::Endpoints;
const LDS: Kind = Kind::Listener;

type Wire<T> = (mpsc::UnboundedSender<T>, UnboundedReceiverStream<T>);

fn wire<T>() -> Wire<T> {
    let (say, hear) = mpsc::unbounded_channel();
    (say, UnboundedReceiverStream::new(hear))
}

fn ask(kind: Kind, names: &[&str]) -> DiscoveryRequest {
    let resource_names = names.iter().map(ToString::to_string).collect();
    DiscoveryRequest {
        node: Some(node()),
        type_url: kind.type_url().into(),
        resource_names,
        ..Default::default()
    }
}

fn subscribe(kind: Kind, names: &[&str]) -> DeltaDiscoveryRequest {
    let resource_names_subscribe = names.iter().map(ToString::to_string).collect();
    let type_url = kind.type_url().into();
    DeltaDiscoveryRequest {
        node: Some(node()),
        type_url,
        resource_names_subscribe,
        ..Default::default()
    }
}

fn world() -> World {
    let mut world = World::default();
    world.service("a", "1").set(LDS, "l", "1").set(Kind::Routes, "t", "1");
    world.set(Kind::VirtualHost, "t/v", "1");
    world
}

#[tokio::test]
async fn s01_s05_both_protocols_on_the_aggregated_service_over_tcp_and_unix() {
    for unix in [false, true] {
        let served = Served::start(&mut world(), unix).await;
        let mut client = Ads::new(served.channel().await);
        let (say, requests) = wire();
        say.send(ask(CDS, &[])).unwrap();
        let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
        let response = stream.message().await.unwrap().unwrap();
        assert_eq!(response.type_url, CDS.type_url());
        assert_eq!(response.control_plane.unwrap().identifier, PLANE);
        assert!(!response.nonce.is_empty() && !response.version_info.is_empty());
        let [any] = response.resources.as_slice() else { panic!("{:?}", response.resources) };
        assert_eq!((any.type_url.as_str(), any.value.as_slice()), (CDS.type_url(), &b"1"[..]));

        let (say, requests) = wire();
        for (kind, names) in [(CDS, &[][..]), (EDS, &["a", "x"])] {
            say.send(subscribe(kind, names)).unwrap();
        }
        let mut stream = client.delta_aggregated_resources(requests).await.unwrap().into_inner();
        let clusters = stream.message().await.unwrap().unwrap();
        let endpoints = stream.message().await.unwrap().unwrap();
        assert_ne!(clusters.nonce, endpoints.nonce);
        assert_eq!(endpoints.control_plane.unwrap().identifier, PLANE);
        assert_eq!(endpoints.removed_resources, ["x"]);
        let [resource] = endpoints.resources.as_slice() else {
            panic!("{:?}", endpoints.resources)
        };
        assert_eq!((resource.name.as_str(), resource.version.len()), ("a", 16));
        let any = resource.resource.clone().unwrap();
        assert_eq!((any.type_url.as_str(), any.value.as_slice()), (EDS.type_url(), &b"1"[..]));
    }
}

/// Asks one per-type service in one protocol, without naming the type.
macro_rules! per_type {
    ($served:ident, $client:path, $method:ident, $request:expr) => {{
        let mut client = <$client>::new($served.channel().await);
        let (say, requests) = wire();
        say.send($request).unwrap();
        let mut stream = client.$method(requests).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap()
    }};
}

#[tokio::test]
async fn s01_s02_both_protocols_on_the_service_of_each_type() {
    use pb::cluster::v3::cluster_discovery_service_client::ClusterDiscoveryServiceClient as Cds;
    use pb::endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient as Eds;
    use pb::listener::v3::listener_discovery_service_client::ListenerDiscoveryServiceClient as Lds;
    use pb::route::v3::route_discovery_service_client::RouteDiscoveryServiceClient as Rds;
    use pb::route::v3::virtual_host_discovery_service_client::VirtualHostDiscoveryServiceClient as Vhds;
    let served = Served::start(&mut world(), false).await;
    let sotw = |names| DiscoveryRequest { type_url: String::new(), ..ask(CDS, names) };
    let delta = |names| DeltaDiscoveryRequest { type_url: String::new(), ..subscribe(CDS, names) };
    let all = [
        (CDS, per_type!(served, Cds<Channel>, stream_clusters, sotw(&[]))),
        (EDS, per_type!(served, Eds<Channel>, stream_endpoints, sotw(&["a"]))),
        (LDS, per_type!(served, Lds<Channel>, stream_listeners, sotw(&[]))),
        (Kind::Routes, per_type!(served, Rds<Channel>, stream_routes, sotw(&["t"]))),
    ];
    for (kind, response) in all {
        assert_eq!((response.type_url.as_str(), response.resources.len()), (kind.type_url(), 1));
    }
    let all = [
        (CDS, per_type!(served, Cds<Channel>, delta_clusters, delta(&[]))),
        (EDS, per_type!(served, Eds<Channel>, delta_endpoints, delta(&["a"]))),
        (LDS, per_type!(served, Lds<Channel>, delta_listeners, delta(&[]))),
        (Kind::Routes, per_type!(served, Rds<Channel>, delta_routes, delta(&["t"]))),
        (Kind::VirtualHost, per_type!(served, Vhds<Channel>, delta_virtual_hosts, delta(&[]))),
    ];
    for (kind, response) in all {
        assert_eq!((response.type_url.as_str(), response.resources.len()), (kind.type_url(), 1));
    }
    let mut client = Cds::new(served.channel().await);
    let status = client.fetch_clusters(sotw(&[])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn s02_s03_a_first_request_that_says_too_little_is_an_invalid_argument() {
    let served = Served::start(&mut world(), false).await;
    let mut client = Ads::new(served.channel().await);
    let stranger = Some(Node { id: "cart".into(), ..Default::default() });
    for (request, words) in [
        (DiscoveryRequest { node: None, ..ask(CDS, &[]) }, "node.id"),
        (
            DiscoveryRequest { node: Some(Node::default()), ..ask(CDS, &[]) },
            "pod/<namespace>/<name>",
        ),
        (DiscoveryRequest { node: stranger, ..ask(CDS, &[]) }, "pod/<namespace>/<name>"),
        (DiscoveryRequest { type_url: String::new(), ..ask(CDS, &[]) }, "type_url"),
    ] {
        let (say, requests) = wire();
        say.send(request).unwrap();
        let mut stream = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
        let status = stream.message().await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(words), "{status}");
    }
    assert_eq!(served.stats.refused_nodes.load(Relaxed), 2);
}

#[tokio::test]
async fn s11_a_node_that_waits_hears_nothing_until_it_is_known() {
    let mut world = world();
    world.without_node = true;
    let served = Served::start(&mut world, false).await;
    let mut client = Ads::new(served.channel().await);
    let (say, requests) = wire();
    say.send(subscribe(LDS, &[])).unwrap();
    let mut stream = client.delta_aggregated_resources(requests).await.unwrap().into_inner();
    let silence = tokio::time::timeout(Duration::from_millis(200), stream.message()).await;
    assert!(silence.is_err(), "{silence:?}");
    world.without_node = false;
    world.publish(&served.store);
    assert_eq!(stream.message().await.unwrap().unwrap().resources.len(), 1);
}

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
