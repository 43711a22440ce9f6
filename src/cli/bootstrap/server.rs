//! How Envoy reaches us: the cluster and the stream.

use std::collections::HashMap;

use anyhow::Result;
use envoy_types::pb::envoy::config::cluster::v3::{
    Cluster, UpstreamConnectionOptions, cluster::ClusterDiscoveryType, cluster::DiscoveryType,
};
use envoy_types::pb::envoy::config::core::v3::{
    self as core, AggregatedConfigSource, ApiConfigSource, ApiVersion, BackoffStrategy,
    ConfigSource, GrpcService, Http2ProtocolOptions, KeepaliveSettings, RetryPolicy, TcpKeepalive,
    address, api_config_source::ApiType, config_source::ConfigSourceSpecifier, grpc_service,
    socket_address::PortSpecifier,
};
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
};
use envoy_types::pb::envoy::extensions::upstreams::http::v3::{
    HttpProtocolOptions, http_protocol_options as http,
};
use envoy_types::pb::google::protobuf::{Any, Duration, UInt32Value};
use prost::Message;

use super::{Protocol, Server, utf8};
use crate::cli::values::{Host, HostPort};
use crate::model::NodeId;
use crate::translate::node_proxy_bind;

/// The name of the cluster that is us.
const XDS_CLUSTER: &str = "aether_xds";

/// The key and type of a cluster's HTTP options.
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Listeners or clusters over the aggregated stream, awaited for as long as it takes: an Envoy
/// that gave up waiting would start without any, and let connections run into nothing.
pub(super) fn over_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        initial_fetch_timeout: Some(Duration::default()),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    }
}

/// The aggregated stream.
pub(super) fn ads(protocol: Protocol) -> ApiConfigSource {
    let api_type = match protocol {
        Protocol::Delta => ApiType::DeltaGrpc,
        Protocol::Sotw => ApiType::Grpc,
    };
    let back_off =
        BackoffStrategy { base_interval: Some(millis(250)), max_interval: Some(millis(10_000)) };
    let retry = RetryPolicy { retry_back_off: Some(back_off), ..RetryPolicy::default() };
    let grpc = grpc_service::EnvoyGrpc {
        cluster_name: XDS_CLUSTER.to_owned(),
        retry_policy: Some(retry),
        ..grpc_service::EnvoyGrpc::default()
    };
    let grpc = GrpcService {
        target_specifier: Some(grpc_service::TargetSpecifier::EnvoyGrpc(grpc)),
        ..GrpcService::default()
    };
    ApiConfigSource {
        api_type: api_type.into(),
        transport_api_version: ApiVersion::V3.into(),
        grpc_services: vec![grpc],
        set_node_on_first_message_only: true,
        ..ApiConfigSource::default()
    }
}

/// The cluster over which Envoy reaches us.
pub(super) fn cluster(server: &Server, node: &NodeId) -> Result<Cluster> {
    let (kind, address) = match server {
        Server::Unix(path) => {
            let pipe = core::Pipe { path: utf8(path)?, mode: 0 };
            (DiscoveryType::Static, address::Address::Pipe(pipe))
        }
        Server::Tcp(HostPort { host, port }, _) => {
            let socket = core::SocketAddress {
                address: host.to_string(),
                port_specifier: Some(PortSpecifier::PortValue((*port).into())),
                ..core::SocketAddress::default()
            };
            let kind = match host {
                Host::Ip(_) => DiscoveryType::Static,
                Host::Name(_) => DiscoveryType::StrictDns,
            };
            (kind, address::Address::SocketAddress(socket))
        }
    };
    let tcp = matches!(server, Server::Tcp(..));
    let transport_socket = match server {
        Server::Tcp(HostPort { host, .. }, Some(secured)) => Some(secured.socket(host)?),
        _ => None,
    };
    let marked = tcp && matches!(node, NodeId::Node(_));
    let options = HashMap::from([(HTTP_OPTIONS.to_owned(), http2()?)]);
    Ok(Cluster {
        name: XDS_CLUSTER.to_owned(),
        connect_timeout: Some(millis(5_000)),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(kind.into())),
        load_assignment: Some(only(address)),
        typed_extension_protocol_options: options,
        transport_socket,
        upstream_connection_options: tcp.then(tcp_keepalive),
        upstream_bind_config: marked.then(node_proxy_bind),
        ..Cluster::default()
    })
}

/// HTTP/2, with pings that find out a server that vanished without a word.
fn http2() -> Result<Any> {
    let keepalive = KeepaliveSettings {
        interval: Some(millis(30_000)),
        timeout: Some(millis(10_000)),
        ..KeepaliveSettings::default()
    };
    let http2 = Http2ProtocolOptions {
        connection_keepalive: Some(keepalive),
        ..Http2ProtocolOptions::default()
    };
    let explicit = http::ExplicitHttpConfig {
        protocol_config: Some(http::explicit_http_config::ProtocolConfig::Http2ProtocolOptions(
            http2,
        )),
    };
    let options = HttpProtocolOptions {
        upstream_protocol_options: Some(http::UpstreamProtocolOptions::ExplicitHttpConfig(
            explicit,
        )),
        ..HttpProtocolOptions::default()
    };
    let mut value = Vec::new();
    options.encode(&mut value)?;
    Ok(Any { type_url: format!("type.googleapis.com/{HTTP_OPTIONS}"), value })
}

/// The kernel's own probes, below HTTP/2.
fn tcp_keepalive() -> UpstreamConnectionOptions {
    let number = |value| Some(UInt32Value { value });
    let keepalive = TcpKeepalive {
        keepalive_probes: number(3),
        keepalive_time: number(30),
        keepalive_interval: number(5),
    };
    UpstreamConnectionOptions {
        tcp_keepalive: Some(keepalive),
        ..UpstreamConnectionOptions::default()
    }
}

/// An assignment of one endpoint.
fn only(address: address::Address) -> ClusterLoadAssignment {
    let endpoint =
        Endpoint { address: Some(core::Address { address: Some(address) }), ..Endpoint::default() };
    let endpoint = LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    };
    let locality =
        LocalityLbEndpoints { lb_endpoints: vec![endpoint], ..LocalityLbEndpoints::default() };
    ClusterLoadAssignment {
        cluster_name: XDS_CLUSTER.to_owned(),
        endpoints: vec![locality],
        ..ClusterLoadAssignment::default()
    }
}

fn millis(millis: i64) -> Duration {
    let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or_default();
    Duration { seconds: millis / 1_000, nanos }
}
