//! Clusters: which there are, where they lead and what they speak.

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
};
use prost::Message;

use super::world::{HTTP, TCP, decoded, seen, service, view};
use crate::model::{HttpVersion, MeshService, Protocol};
use crate::translate::CaptureMode;
use crate::xds::Kind;

/// Cluster to assignment and protocol.
fn clusters(mode: CaptureMode, services: Vec<MeshService>) -> BTreeMap<String, String> {
    let snapshot = seen(mode, services);
    let view = view(&snapshot, "pod/shop/web", "delta");
    let all: BTreeMap<String, Cluster> = decoded(&view, Kind::Cluster);
    let mut words = BTreeMap::new();
    for (name, cluster) in all {
        assert_eq!(cluster.name, name);
        let resource = view.get(Kind::Cluster, &name).unwrap();
        let to = cluster.eds_cluster_config.as_ref().map(|eds| eds.service_name.clone());
        assert_eq!(resource.needs().map(ToString::to_string), to, "{name}");
        let options = cluster.typed_extension_protocol_options.values().next();
        let speaks = options.map_or("tcp", |any| {
            let options = HttpProtocolOptions::decode(any.value.as_slice()).unwrap();
            match options.upstream_protocol_options.unwrap() {
                UpstreamProtocolOptions::UseDownstreamProtocolConfig(_) => "as client",
                UpstreamProtocolOptions::ExplicitHttpConfig(explicit) => {
                    match explicit.protocol_config.unwrap() {
                        ProtocolConfig::HttpProtocolOptions(_) => "http1",
                        ProtocolConfig::Http2ProtocolOptions(_) => "http2",
                        other @ ProtocolConfig::Http3ProtocolOptions(_) => panic!("{other:?}"),
                    }
                }
                other @ UpstreamProtocolOptions::AutoConfig(_) => panic!("{other:?}"),
            }
        });
        words.insert(name, format!("{} {speaks}", to.unwrap_or_default()));
    }
    words
}

fn rows(table: &[(&str, &str)]) -> BTreeMap<String, String> {
    table.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect()
}

fn services() -> Vec<MeshService> {
    let versions = [
        (80, Protocol::Http(HttpVersion::Http1)),
        (81, Protocol::Http(HttpVersion::Http2)),
        (82, HTTP),
    ];
    let mut headless = service("shop/peers", &[], &[(80, HTTP), (6379, TCP)]);
    headless.headless = true;
    vec![
        service("shop/cart", &["10.96.0.1"], &versions),
        service("shop/db", &["10.96.0.2"], &[(5432, TCP), (5433, TCP)]),
        service("shop/mesh", &["10.96.0.3"], &[(18081, TCP), (80, HTTP)]),
        headless,
    ]
}

#[test]
fn redirect_all_has_a_cluster_for_each_port_and_way() {
    let expected = rows(&[
        ("http:cart.shop.aether.internal", "shop/cart:80 http1"),
        ("http:cart.shop.aether.internal:81", "shop/cart:81 http2"),
        ("http:cart.shop.aether.internal:82", "shop/cart:82 as client"),
        ("tcp:db.shop.aether.internal:5432", "shop/db:5432 tcp"),
        ("tcp:db.shop.aether.internal:5433", "shop/db:5433 tcp"),
        ("tcp:db.shop.aether.internal:18081", "shop/db:5432 tcp"),
        ("http:mesh.shop.aether.internal", "shop/mesh:18081 as client"),
        ("http:mesh.shop.aether.internal:80", "shop/mesh:80 as client"),
        ("tcp:mesh.shop.aether.internal:18081", "shop/mesh:18081 tcp"),
        ("tcp:mesh.shop.aether.internal:80", "shop/mesh:80 tcp"),
        // No address leads to a headless service, so it has no TCP cluster.
        ("http:peers.shop.aether.internal", "shop/peers:80 as client"),
        ("http:peers.shop.aether.internal:6379", "shop/peers:6379 as client"),
        ("passthrough_original_dst", " as client"),
    ]);
    assert_eq!(clusters(CaptureMode::RedirectAll, services()), expected);
}

#[test]
fn scoped_has_none_that_nothing_reaches() {
    let expected = rows(&[
        ("http:cart.shop.aether.internal", "shop/cart:80 http1"),
        ("http:cart.shop.aether.internal:81", "shop/cart:81 http2"),
        ("http:cart.shop.aether.internal:82", "shop/cart:82 as client"),
        ("tcp:db.shop.aether.internal:18081", "shop/db:5432 tcp"),
        ("http:mesh.shop.aether.internal", "shop/mesh:18081 as client"),
        ("http:mesh.shop.aether.internal:80", "shop/mesh:80 as client"),
        ("tcp:mesh.shop.aether.internal:18081", "shop/mesh:18081 tcp"),
        ("http:peers.shop.aether.internal", "shop/peers:80 as client"),
        ("http:peers.shop.aether.internal:6379", "shop/peers:6379 as client"),
    ]);
    assert_eq!(clusters(CaptureMode::Scoped, services()), expected);
    let snapshot = seen(CaptureMode::Scoped, services());
    let assignments = view(&snapshot, "pod/shop/web", "delta").names(Kind::Endpoints);
    assert!(!assignments.contains("shop/db:5433"));
}

#[test]
fn no_cluster_has_a_limit_and_none_panics() {
    let snapshot = seen(CaptureMode::RedirectAll, services());
    let view = view(&snapshot, "pod/shop/web", "delta");
    for (name, cluster) in decoded::<Cluster>(&view, Kind::Cluster) {
        let thresholds = cluster.circuit_breakers.unwrap().thresholds;
        assert_eq!(thresholds.iter().map(|t| t.priority).collect::<Vec<_>>(), [0, 1], "{name}");
        for threshold in thresholds {
            for limit in [
                threshold.max_connections,
                threshold.max_pending_requests,
                threshold.max_requests,
                threshold.max_retries,
            ] {
                assert_eq!(limit.unwrap().value, u32::MAX, "{name}");
            }
        }
        let panic = cluster.common_lb_config.unwrap().healthy_panic_threshold.unwrap().value;
        assert!(panic.abs() < f64::EPSILON && cluster.ignore_health_on_host_removal, "{name}");
        assert_eq!(cluster.connect_timeout.unwrap().seconds, 5, "{name}");
        let through = name == "passthrough_original_dst";
        let kind = if through { DiscoveryType::OriginalDst } else { DiscoveryType::Eds };
        let expected = ClusterDiscoveryType::Type(kind.into());
        assert_eq!(cluster.cluster_discovery_type, Some(expected), "{name}");
        assert_eq!(cluster.connection_pool_per_downstream_connection, through, "{name}");
    }
}
