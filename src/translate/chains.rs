//! The chains of a service, and those that every capture listener has.
//!
//! But for the one that ends loops no chain matches a destination port: such a chain would send
//! every other connection to that port to the default chain.

use std::net::IpAddr;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::CidrRange;
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain, FilterChainMatch};
use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3::FilterStateValue;
use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3::filter_state_value::{Key, SharedWithUpstream, Value};
use envoy_types::pb::envoy::extensions::filters::network::set_filter_state::v3::Config as SetFilterState;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use envoy_types::util::pack_any;
use prost::{Message, Name};

use super::naming::{self, CAPTURE_PORT, CHAIN_DEFAULT, CHAIN_HTTP, CHAIN_SELF, NOWHERE};
use super::proto::{encoded, format, never, number, whole};
use super::{CaptureMode, Settings};
use crate::model::MeshService;

/// What `http_inspector` calls the protocols that the HTTP connection manager understands.
const HTTP: [&str; 3] = ["http/1.0", "http/1.1", "h2c"];
/// The transport protocol of everything that is not TLS.
const RAW: &str = "raw_buffer";

/// A chain by its name, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    /// The name; chains are sorted by it.
    pub name: String,
    /// The encoded message; of an HTTP chain without its filter, which depends on the namespace
    /// of the caller.
    pub body: Bytes,
}

/// From where a connection leaves that passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// From where Envoy runs.
    FromEnvoysNamespace,
    /// From the network namespace of the listener that took it: a node proxy's runs elsewhere.
    FromListenersNamespace,
}

/// The chains of one service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Chains {
    /// Complete ones.
    pub tcp: Vec<Chain>,
    /// Those that still lack the HTTP connection manager.
    pub http: Vec<Chain>,
}

impl Chains {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.http.is_empty()
    }
}

/// Whether connections to an address of this service have a chain that leads to its TCP clusters.
/// A service with HTTP ports alone never has one, since an address outranks every protocol.
pub(super) fn has_tcp_chain(mode: CaptureMode, service: &MeshService) -> bool {
    let speaks = match mode {
        CaptureMode::RedirectAll => service.has_tcp(),
        CaptureMode::Scoped => {
            service.port(service.default_port).is_some_and(|port| !port.protocol.is_http())
        }
    };
    speaks && !service.headless && !service.owned_ips.is_empty()
}

/// The chains of a service, on those of its addresses that are given.
pub(super) fn of_service(settings: &Settings, service: &MeshService, ips: &[IpAddr]) -> Chains {
    let mut chains = Chains::default();
    if !has_tcp_chain(settings.mode, service) {
        return chains;
    }
    let key = &service.key;
    let filters = tcp_filters(&naming::tcp_cluster_stem(&settings.names, key));
    let mixed = settings.mode == CaptureMode::RedirectAll && service.has_http();
    for ip in ips {
        let on = FilterChainMatch {
            prefix_ranges: vec![CidrRange {
                address_prefix: ip.to_string(),
                prefix_len: number(whole(*ip)),
            }],
            ..FilterChainMatch::default()
        };
        if mixed {
            let raw = FilterChainMatch { transport_protocol: RAW.to_owned(), ..on.clone() };
            chains.http.push(chain(naming::http_chain(key, *ip), Some(http(raw.clone())), vec![]));
            // Envoy does not go back from a narrower match: raw bytes that are no HTTP need a
            // chain of their own beside the one for HTTP.
            chains.tcp.push(chain(naming::raw_chain(key, *ip), Some(raw), filters.clone()));
        }
        chains.tcp.push(chain(naming::tcp_chain(key, *ip), Some(on), filters.clone()));
    }
    chains
}

/// The chain for HTTP to any address, without its filter. In scoped mode it takes all that no
/// address took.
pub(super) fn http_to_any(mode: CaptureMode) -> Chain {
    let on = match mode {
        CaptureMode::RedirectAll => Some(http(FilterChainMatch {
            transport_protocol: RAW.to_owned(),
            ..FilterChainMatch::default()
        })),
        CaptureMode::Scoped => None,
    };
    chain(CHAIN_HTTP.to_owned(), on, vec![])
}

/// The chain that ends a loop: a connection to the listener's own port leads nowhere.
pub(super) fn to_itself() -> FilterChain {
    FilterChain {
        name: CHAIN_SELF.to_owned(),
        filter_chain_match: Some(FilterChainMatch {
            destination_port: number(CAPTURE_PORT.into()),
            ..FilterChainMatch::default()
        }),
        filters: vec![tcp_proxy(CHAIN_SELF, NOWHERE)],
        ..FilterChain::default()
    }
}

/// The chain of everything else: on to where the connection was going.
pub(super) fn passthrough(leave: Leave) -> FilterChain {
    let proxy = tcp_proxy("cap_passthrough", naming::PASSTHROUGH);
    FilterChain {
        name: CHAIN_DEFAULT.to_owned(),
        filters: network_namespace(leave).into_iter().chain([proxy]).collect(),
        ..FilterChain::default()
    }
}

/// What comes before the HTTP connection manager, encoded as fields of a chain.
pub(super) fn before_http(leave: Leave) -> Bytes {
    let filters = network_namespace(leave).into_iter().collect();
    encoded(&FilterChain { filters, ..FilterChain::default() })
}

/// The filter that tells the cluster of what passes through where the connection came in.
fn network_namespace(leave: Leave) -> Option<Filter> {
    if leave == Leave::FromEnvoysNamespace {
        return None;
    }
    let value = FilterStateValue {
        key: Some(Key::ObjectKey(
            "envoy.network.upstream_bind_override.network_namespace".to_owned(),
        )),
        factory_key: "envoy.string".to_owned(),
        value: Some(Value::FormatString(format(
            "%FILTER_STATE(envoy.network.network_namespace:PLAIN)%",
        ))),
        shared_with_upstream: SharedWithUpstream::Once.into(),
        ..FilterStateValue::default()
    };
    let state = SetFilterState { on_new_connection: vec![value], ..SetFilterState::default() };
    Some(filter("envoy.filters.network.set_filter_state", &state))
}

fn http(on: FilterChainMatch) -> FilterChainMatch {
    FilterChainMatch { application_protocols: HTTP.map(str::to_owned).to_vec(), ..on }
}

fn chain(name: String, on: Option<FilterChainMatch>, filters: Vec<Filter>) -> Chain {
    let message =
        FilterChain { name: name.clone(), filter_chain_match: on, filters, ..Default::default() };
    Chain { name, body: encoded(&message) }
}

/// The cluster's name is made of the port that the client asked for when it connects. So ports
/// come and go as clusters while the listener stays as it is.
fn tcp_filters(cluster_stem: &str) -> Vec<Filter> {
    let value = FilterStateValue {
        key: Some(Key::ObjectKey("envoy.tcp_proxy.cluster".to_owned())),
        value: Some(Value::FormatString(format(format!("{cluster_stem}:%DOWNSTREAM_LOCAL_PORT%")))),
        ..FilterStateValue::default()
    };
    let state = SetFilterState { on_new_connection: vec![value], ..SetFilterState::default() };
    vec![filter("envoy.filters.network.set_filter_state", &state), tcp_proxy("cap_tcp", NOWHERE)]
}

fn tcp_proxy(stat_prefix: &str, cluster: &str) -> Filter {
    let proxy = TcpProxy {
        stat_prefix: stat_prefix.to_owned(),
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
        idle_timeout: never(),
        ..TcpProxy::default()
    };
    filter("envoy.filters.network.tcp_proxy", &proxy)
}

/// A network filter.
pub(super) fn filter<T: Name + Message + Clone>(name: &str, config: &T) -> Filter {
    Filter {
        name: name.to_owned(),
        config_type: Some(ConfigType::TypedConfig(pack_any(config.clone()))),
    }
}
