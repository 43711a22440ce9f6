//! The DNS listener: `dns_filter` with the whole table inside.

use std::collections::BTreeSet;
use std::net::IpAddr;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;
use envoy_types::pb::envoy::config::core::v3::{Address, TrafficDirection};
use envoy_types::pb::envoy::config::listener::v3::listener_filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::{Listener, ListenerFilter, UdpListenerConfig};
use envoy_types::pb::envoy::data::dns::v3::DnsTable;
use envoy_types::pb::envoy::data::dns::v3::dns_table::dns_endpoint::EndpointConfig;
use envoy_types::pb::envoy::data::dns::v3::dns_table::{
    AddressList, DnsEndpoint, DnsVirtualDomain,
};
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::DnsFilterConfig;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::dns_filter_config::server_context_config::ConfigSource;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::dns_filter_config::{
    ClientContextConfig, ServerContextConfig,
};
use envoy_types::pb::envoy::extensions::network::dns_resolver::cares::v3::CaresDnsResolverConfig;

use super::DnsFilter;
use super::proto::{address, any, encoded, extension, millis};
use crate::model::{MeshNames, Records};
use crate::xds::Stem;

/// How long an answer may be kept, in milliseconds: the least that Envoy allows.
const TTL_MS: u32 = 30_000;
/// How many forwarded queries may be under way.
const PENDING: u64 = 4096;

/// The stem of every DNS listener: all but its name and addresses.
pub(super) fn stem(filter: &DnsFilter, names: &MeshNames, records: &Records) -> Stem {
    let config = DnsFilterConfig {
        stat_prefix: "mesh_dns".to_owned(),
        server_config: Some(ServerContextConfig {
            config_source: Some(ConfigSource::InlineDnsTable(table(names, records))),
        }),
        client_config: forwarding(filter),
        ..DnsFilterConfig::default()
    };
    let listener = Listener {
        stat_prefix: "dns".to_owned(),
        traffic_direction: TrafficDirection::Outbound.into(),
        udp_listener_config: Some(UdpListenerConfig::default()),
        listener_filters: vec![ListenerFilter {
            name: "envoy.filters.udp.dns_filter".to_owned(),
            config_type: any(config).map(ConfigType::TypedConfig),
            ..ListenerFilter::default()
        }],
        ..Listener::default()
    };
    Stem::new(encoded(&listener))
}

/// The names with their addresses, sorted.
fn table(names: &MeshNames, records: &Records) -> DnsTable {
    let of = |key| {
        let v4 = records.v4.get(key).map(|ip| IpAddr::V4(*ip));
        let v6 = records.v6.get(key).map(|ip| IpAddr::V6(*ip));
        v4.into_iter().chain(v6).map(|ip| ip.to_string()).collect::<Vec<_>>()
    };
    let keys: BTreeSet<_> = records.v4.keys().chain(records.v6.keys()).collect();
    let qualified = keys.into_iter().map(|key| (names.qualified(key), of(key)));
    let short = records.short.iter().map(|(name, key)| (names.short(name), of(key)));
    let mut all: Vec<_> = qualified.chain(short).filter(|(_, ips)| !ips.is_empty()).collect();
    all.sort();
    let virtual_domains = all.into_iter().map(|(name, address)| DnsVirtualDomain {
        name,
        endpoint: Some(DnsEndpoint {
            endpoint_config: Some(EndpointConfig::AddressList(AddressList { address })),
        }),
        answer_ttl: millis(TTL_MS),
    });
    DnsTable { virtual_domains: virtual_domains.collect(), ..DnsTable::default() }
}

/// Where unknown names are asked; without any upstream the filter answers from its table alone.
///
/// The lookups live in the filter and go with it when a change of the table replaces the listener:
/// Envoy then answers those that are under way with NXDOMAIN, and has no option for it.
fn forwarding(filter: &DnsFilter) -> Option<ClientContextConfig> {
    if filter.upstream.is_empty() {
        return None;
    }
    let resolvers: Vec<Address> =
        filter.upstream.iter().map(|server| address(*server, Protocol::Udp)).collect();
    let cares = CaresDnsResolverConfig { resolvers, ..CaresDnsResolverConfig::default() };
    Some(ClientContextConfig {
        resolver_timeout: millis(5000),
        max_pending_lookups: PENDING,
        typed_dns_resolver_config: Some(extension("envoy.network.dns_resolver.cares", cares)),
        ..ClientContextConfig::default()
    })
}
