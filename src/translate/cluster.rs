//! Clusters: one for each port of a service and for the way that it is reached.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::cluster::v3::circuit_breakers::Thresholds;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig, LbPolicy,
};
use envoy_types::pb::envoy::config::cluster::v3::{
    CircuitBreakers, Cluster, UpstreamConnectionOptions,
};
use envoy_types::pb::envoy::config::core::v3::socket_option::{SocketState, Value};
use envoy_types::pb::envoy::config::core::v3::{
    BindConfig, ExtraSourceAddress, RoutingPriority, SocketOption, TcpKeepalive,
};
use envoy_types::pb::envoy::extensions::local_address_selectors::filter_state_override::v3::Config as FilterStateOverride;
use envoy_types::pb::envoy::r#type::v3::Percent;
use envoy_types::util::pack_any;

use super::http_options::upstream_options;
use super::naming::{self, MESH_PORT};
use super::proto::{ads, encoded, extension, millis, never, number, socket};
use super::{CaptureMode, Settings, chains};
use crate::model::{HttpVersion, MeshService, Protocol};
use crate::xds::{Entry, Kind, Resource, Rope};

/// `setsockopt(2)` on Linux: the level of sockets themselves, and the mark.
const SOL_SOCKET: i64 = 1;
const SO_MARK: i64 = 36;

/// The tails of clusters, which differ by what is spoken to the backend and by nothing else.
#[derive(Debug)]
pub(super) struct Tails {
    http1: Bytes,
    http2: Bytes,
    as_client: Bytes,
    tcp: Bytes,
}

impl Tails {
    pub(super) fn new() -> Self {
        let http = |version| encoded(&over_eds(Some(version)));
        Self {
            http1: http(HttpVersion::Http1),
            http2: http(HttpVersion::Http2),
            as_client: http(HttpVersion::AsClient),
            tcp: encoded(&over_eds(None)),
        }
    }

    /// The tail of the HTTP cluster of a port. A TCP port that is reached by authority speaks what
    /// the client speaks: HTTP was not declared there, so nothing is known of its version.
    fn http(&self, protocol: Protocol) -> &Bytes {
        match protocol {
            Protocol::Http(HttpVersion::Http1) => &self.http1,
            Protocol::Http(HttpVersion::Http2) => &self.http2,
            Protocol::Http(HttpVersion::AsClient) | Protocol::Tcp => &self.as_client,
        }
    }

    /// The clusters of a service: those that something can reach in this mode.
    pub(super) fn of_service(&self, settings: &Settings, service: &MeshService) -> Vec<Resource> {
        let mut made = Vec::new();
        if service.has_http() {
            for port in &service.ports {
                let name = naming::http_cluster(&settings.names, service, port.number);
                made.push(cluster(name, service, port.number, self.http(port.protocol)));
            }
        }
        if chains::has_tcp_chain(settings.mode, service) {
            let stem = naming::tcp_cluster_stem(&settings.names, &service.key);
            let mut ports: Vec<(u16, u16)> = Vec::new();
            if settings.mode == CaptureMode::RedirectAll {
                ports.extend(service.ports.iter().map(|port| (port.number, port.number)));
            }
            // In scoped mode nothing else arrives.
            if !ports.iter().any(|(number, _)| *number == MESH_PORT) {
                ports.push((MESH_PORT, service.default_port));
            }
            for (number, serves) in ports {
                made.push(cluster(format!("{stem}:{number}"), service, serves, &self.tcp));
            }
        }
        made
    }
}

/// A cluster as a table holds it. For node proxies there is a form of its own beside that for
/// sidecars, `of_nodes`, made of the very same bytes before a few of its own.
pub(super) fn entry(cluster: &Resource, of_nodes: Option<&Marks>) -> Entry {
    let plain = Entry::Plain(cluster.clone());
    let Some(marks) = of_nodes else { return plain };
    let passes = **cluster.name() == *naming::PASSTHROUGH;
    let tail = if passes { &marks.passthrough } else { &marks.others };
    let chunks = cluster.body().chunks().iter().chain([tail]).cloned();
    let name = cluster.name().clone();
    let marked = Resource::new(Kind::Cluster, name, Rope::new(chunks), cluster.needs().cloned());
    let forms = BTreeMap::from([(naming::NODE_PROXY_LENS.into(), Entry::Plain(marked))]);
    Entry::ByLens { forms: Arc::new(forms), other: Box::new(plain) }
}

/// What the clusters of node proxies have besides, encoded.
#[derive(Debug)]
pub(super) struct Marks {
    passthrough: Bytes,
    others: Bytes,
}

impl Marks {
    pub(super) fn new() -> Self {
        let bind =
            |config| encoded(&Cluster { upstream_bind_config: Some(config), ..Cluster::default() });
        let marked = node_proxy_bind();
        let any = |ip: IpAddr| Some(socket((ip, 0).into()));
        let selector = FilterStateOverride {};
        let passthrough = BindConfig {
            // Any address of the network namespace that the listener's filter state names.
            source_address: any(Ipv4Addr::UNSPECIFIED.into()),
            extra_source_addresses: vec![ExtraSourceAddress {
                address: any(Ipv6Addr::UNSPECIFIED.into()),
                ..ExtraSourceAddress::default()
            }],
            local_address_selector: Some(extension(
                "envoy.upstream.local_address_selector.filter_state_override",
                selector,
            )),
            ..marked.clone()
        };
        Self { passthrough: bind(passthrough), others: bind(marked) }
    }
}

/// What every upstream socket of a node proxy has: the mark by which the rules in a pod tell its
/// connections from those of the pod.
pub fn node_proxy_bind() -> BindConfig {
    let mark = SocketOption {
        description: "SO_MARK".to_owned(),
        level: SOL_SOCKET,
        name: SO_MARK,
        state: SocketState::StatePrebind.into(),
        value: Some(Value::IntValue(naming::NODE_PROXY_MARK)),
        ..SocketOption::default()
    };
    BindConfig { socket_options: vec![mark], ..BindConfig::default() }
}

/// The cluster of what is no mesh service: to the address that the client asked for, in the
/// protocol that it speaks, never sharing a connection with another.
pub(super) fn passthrough() -> Resource {
    let message = Cluster {
        name: naming::PASSTHROUGH.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::OriginalDst.into())),
        lb_policy: LbPolicy::ClusterProvided.into(),
        connection_pool_per_downstream_connection: true,
        ..common(Some(HttpVersion::AsClient))
    };
    Resource::new(Kind::Cluster, naming::PASSTHROUGH, encoded(&message), None)
}

fn cluster(name: String, service: &MeshService, port: u16, tail: &Bytes) -> Resource {
    let assignment: Arc<str> = naming::assignment(&service.key, port).into();
    let head = Cluster {
        name: name.clone(),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: Some(ads()),
            service_name: assignment.to_string(),
        }),
        ..Cluster::default()
    };
    let body = Rope::new([encoded(&head), tail.clone()]);
    Resource::new(Kind::Cluster, name, body, Some(assignment))
}

fn over_eds(http: Option<HttpVersion>) -> Cluster {
    Cluster {
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        // The fewest requests under way of two hosts by chance, with weights honoured: one slow
        // backend does not collect them.
        lb_policy: LbPolicy::LeastRequest.into(),
        ..common(http)
    }
}

fn common(http: Option<HttpVersion>) -> Cluster {
    let options = http.map(|version| {
        let name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned();
        (name, pack_any(upstream_options(version)))
    });
    Cluster {
        connect_timeout: millis(5000),
        circuit_breakers: Some(no_breakers()),
        common_lb_config: Some(CommonLbConfig {
            // Never to one that is not healthy, however few are.
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            // A change takes effect at once: changes are batched before they come here.
            update_merge_window: never(),
            ..CommonLbConfig::default()
        }),
        ignore_health_on_host_removal: true,
        // The application's own keep-alive ends at the proxy; without one behind it, an idle
        // connection through a NAT would be forgotten there.
        upstream_connection_options: Some(UpstreamConnectionOptions {
            tcp_keepalive: Some(TcpKeepalive {
                keepalive_time: number(60),
                keepalive_interval: number(60),
                keepalive_probes: number(9),
            }),
            ..UpstreamConnectionOptions::default()
        }),
        typed_extension_protocol_options: options.into_iter().collect::<HashMap<_, _>>(),
        ..Cluster::default()
    }
}

/// Circuit breakers that never break: the default of 1,024 turns load into 503.
fn no_breakers() -> CircuitBreakers {
    let most = |priority: RoutingPriority| Thresholds {
        priority: priority.into(),
        max_connections: number(u32::MAX),
        max_pending_requests: number(u32::MAX),
        max_requests: number(u32::MAX),
        max_retries: number(u32::MAX),
        ..Thresholds::default()
    };
    CircuitBreakers {
        thresholds: vec![most(RoutingPriority::Default), most(RoutingPriority::High)],
        ..CircuitBreakers::default()
    }
}
