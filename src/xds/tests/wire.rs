//! The server over real connections, with a stock gRPC client.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service as pb;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use pb::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;
use tonic::transport::Channel;

use super::super::Kind;
use super::served::{PLANE, Served, node};
use super::world::{CDS, EDS, LDS, World};

pub type Wire<T> = (mpsc::UnboundedSender<T>, UnboundedReceiverStream<T>);

pub fn wire<T>() -> Wire<T> {
    let (say, hear) = mpsc::unbounded_channel();
    (say, UnboundedReceiverStream::new(hear))
}

pub fn ask(kind: Kind, names: &[&str]) -> DiscoveryRequest {
    let resource_names = names.iter().map(ToString::to_string).collect();
    DiscoveryRequest {
        node: Some(node()),
        type_url: kind.type_url().into(),
        resource_names,
        ..Default::default()
    }
}

pub fn subscribe(kind: Kind, names: &[&str]) -> DeltaDiscoveryRequest {
    let resource_names_subscribe = names.iter().map(ToString::to_string).collect();
    let type_url = kind.type_url().into();
    DeltaDiscoveryRequest {
        node: Some(node()),
        type_url,
        resource_names_subscribe,
        ..Default::default()
    }
}

pub fn world() -> World {
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
