//! `aether bootstrap`: what an Envoy needs in order to ask for everything else.
//!
//! The files in `envoy/` are what this prints, with comments on each choice; a test holds them
//! equal.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use envoy_types::pb::envoy::config::bootstrap::v3::bootstrap::{
    DeferredStatOptions, DynamicResources, StaticResources,
};
use envoy_types::pb::envoy::config::bootstrap::v3::{self as envoy, Admin};
use envoy_types::pb::envoy::config::cluster::v3::{
    Cluster, UpstreamConnectionOptions, cluster::ClusterDiscoveryType, cluster::DiscoveryType,
};
use envoy_types::pb::envoy::config::core::v3::{
    self as core, AggregatedConfigSource, ApiConfigSource, ApiVersion, BackoffStrategy,
    ConfigSource, GrpcService, Http2ProtocolOptions, KeepaliveSettings, Node, RetryPolicy,
    TcpKeepalive, address, api_config_source::ApiType, config_source::ConfigSourceSpecifier,
    grpc_service, socket_address::PortSpecifier,
};
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
};
use envoy_types::pb::envoy::extensions::upstreams::http::v3::{
    HttpProtocolOptions, http_protocol_options as http,
};
use envoy_types::pb::google::protobuf::{Any, Duration, UInt32Value};
use prost::Message;

use super::serve::DEFAULT_SOCKET;
use super::values::{Host, HostPort, Socket};
use crate::descriptors;
use crate::model::NodeId;

/// The name of the cluster that is us.
const XDS_CLUSTER: &str = "aether_xds";
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Print an Envoy bootstrap for a node, as JSON.
///
/// Start Envoy with it as uid 1337, which the redirection in the pod skips:
/// envoy --drain-time-s 30 -c bootstrap.json
#[derive(Debug, Clone, Args)]
pub struct Bootstrap {
    /// Whose Envoy it is: pod/<namespace>/<name> or node/<node name>.
    #[arg(long, env = "AETHER_NODE", value_name = "ID")]
    node: NodeId,

    /// Unix socket of `aether serve` [default: /run/aether/xds.sock, unless --xds-address is given].
    #[arg(long, env = "AETHER_XDS_SOCKET", value_name = "PATH")]
    xds_socket: Option<Socket>,

    /// TCP address of `aether serve`, by IP address or name, in place of the Unix socket.
    #[arg(
        long,
        env = "AETHER_XDS_ADDRESS",
        value_name = "HOST:PORT",
        conflicts_with = "xds_socket"
    )]
    xds_address: Option<HostPort>,

    /// How Envoy asks: for changes alone (delta), or for the whole state of the world.
    #[arg(
        long,
        env = "AETHER_PROTOCOL",
        value_name = "PROTOCOL",
        default_value = "delta",
        value_enum
    )]
    protocol: Protocol,

    #[command(flatten)]
    admin: AdminSocket,
}

/// The two protocols of xDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// Incremental.
    Delta,
    /// State of the world.
    Sotw,
}

/// Where Envoy's admin interface listens.
#[derive(Debug, Clone, Args)]
pub struct AdminSocket {
    /// Unix socket of Envoy's admin interface, or `none`.
    #[arg(
        long,
        env = "AETHER_ADMIN_SOCKET",
        value_name = "PATH",
        default_value = "/tmp/aether-admin.sock"
    )]
    admin_socket: Socket,
}

/// Where Envoy finds us.
enum Server {
    Unix(PathBuf),
    Tcp(HostPort),
}

impl Bootstrap {
    /// Prints it.
    pub fn run(&self) -> Result<()> {
        let bootstrap = self.bootstrap()?.encode_to_vec();
        super::print(&descriptors::to_json("envoy.config.bootstrap.v3.Bootstrap", &bootstrap)?)
    }

    /// The bootstrap.
    pub(super) fn bootstrap(&self) -> Result<envoy::Bootstrap> {
        let server = match (&self.xds_address, &self.xds_socket) {
            (Some(address), _) => Server::Tcp(address.clone()),
            (None, None) => Server::Unix(DEFAULT_SOCKET.into()),
            (None, Some(Socket::At(path))) => Server::Unix(path.clone()),
            (None, Some(Socket::Off)) => {
                anyhow::bail!("--xds-socket is off: name the server with --xds-address HOST:PORT")
            }
        };
        Ok(envoy::Bootstrap {
            node: Some(node(&self.node)),
            admin: self.admin.admin()?,
            static_resources: Some(StaticResources {
                clusters: vec![xds_cluster(&server)?],
                ..StaticResources::default()
            }),
            dynamic_resources: Some(DynamicResources {
                ads_config: Some(ads(self.protocol)),
                cds_config: Some(over_ads()),
                lds_config: Some(over_ads()),
                ..DynamicResources::default()
            }),
            deferred_stat_options: Some(DeferredStatOptions {
                enable_deferred_creation_stats: true,
            }),
            ..envoy::Bootstrap::default()
        })
    }
}

impl AdminSocket {
    /// The admin interface; `None` where it is off.
    pub(super) fn admin(&self) -> Result<Option<Admin>> {
        let Socket::At(path) = &self.admin_socket else { return Ok(None) };
        // Its owner alone: whoever reaches it can drain the proxy.
        let pipe = core::Pipe { path: utf8(path)?, mode: 0o600 };
        let address = core::Address { address: Some(address::Address::Pipe(pipe)) };
        Ok(Some(Admin { address: Some(address), ..Admin::default() }))
    }
}

/// How Envoy introduces itself.
pub(super) fn node(id: &NodeId) -> Node {
    Node { id: id.to_string(), cluster: "aether".to_owned(), ..Node::default() }
}

/// A path as a message holds it.
fn utf8(path: &std::path::Path) -> Result<String> {
    let text = path.to_str().context("the path of a socket must be UTF-8")?;
    Ok(text.to_owned())
}

/// Listeners or clusters over the aggregated stream, awaited for as long as it takes: an Envoy
/// that gave up waiting would start without any, and let connections run into nothing.
fn over_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        initial_fetch_timeout: Some(Duration::default()),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    }
}

fn ads(protocol: Protocol) -> ApiConfigSource {
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
fn xds_cluster(server: &Server) -> Result<Cluster> {
    let (kind, address) = match server {
        Server::Unix(path) => {
            let pipe = core::Pipe { path: utf8(path)?, mode: 0 };
            (DiscoveryType::Static, address::Address::Pipe(pipe))
        }
        Server::Tcp(HostPort { host, port }) => {
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
    let tcp = matches!(server, Server::Tcp(_));
    let options = HashMap::from([(HTTP_OPTIONS.to_owned(), http2()?)]);
    Ok(Cluster {
        name: XDS_CLUSTER.to_owned(),
        connect_timeout: Some(millis(5_000)),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(kind.into())),
        load_assignment: Some(only(address)),
        typed_extension_protocol_options: options,
        upstream_connection_options: tcp.then(tcp_keepalive),
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
        ..TcpKeepalive::default()
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
