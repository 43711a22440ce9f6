//! The capture listener: a head for each pod, and a tail that the pods of a namespace share. That of
//! a pod that lists its upstreams has a tail of its own, of chunks that others have too.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use envoy_types::pb::envoy::config::core::v3::TrafficDirection;
use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;
use envoy_types::pb::envoy::config::listener::v3::listener_filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::listener_filter_chain_match_predicate::{
    MatchSet, Rule,
};
use envoy_types::pb::envoy::config::listener::v3::{
    AdditionalAddress, Listener, ListenerFilter, ListenerFilterChainMatchPredicate as Predicate,
};
use envoy_types::pb::envoy::extensions::filters::listener::http_inspector::v3::HttpInspector;
use envoy_types::pb::envoy::extensions::filters::listener::original_dst::v3::OriginalDst;
use envoy_types::pb::envoy::extensions::filters::listener::tls_inspector::v3::TlsInspector;
use envoy_types::pb::envoy::r#type::v3::Int32Range;
use prost::{Message, Name};

use super::chains::{self, Chain, Leave};
use super::proto::{address_in, any, encoded, millis, number};
use super::{CaptureMode, Settings, hcm};
use crate::xds::{Rope, Stem, Version, field};

/// How much of a connection is buffered, in bytes.
const BUFFER: u32 = 32 * 1024;
/// How long the inspectors wait for a client's first bytes before the connection goes on
/// without them.
const INSPECTION_MS: u32 = 1000;
/// The fields of a `Listener` and a `FilterChain` that are written one by one.
const FILTER_CHAINS: u32 = 3;
const FILTERS: u32 = 3;
/// What a chain takes as a field of its listener besides itself, at most: its number and its length.
const BEFORE_A_CHAIN: usize = 6;

/// A listener's own fields: its name and where it listens. On loopback nothing but redirected
/// connections can reach it; on any other address it would be an open relay.
///
/// `netns` is the file of the network namespace where it listens, `None` for that of Envoy itself.
pub(super) fn head(
    name: &str,
    port: u16,
    protocol: Protocol,
    ipv6: bool,
    netns: Option<&str>,
) -> Bytes {
    let on = |ip: SocketAddr| Some(address_in(netns.unwrap_or_default(), ip, protocol));
    let v6 = AdditionalAddress {
        address: on((Ipv6Addr::LOCALHOST, port).into()),
        ..AdditionalAddress::default()
    };
    encoded(&Listener {
        name: name.to_owned(),
        address: on((Ipv4Addr::LOCALHOST, port).into()),
        additional_addresses: ipv6.then_some(v6).into_iter().collect(),
        ..Listener::default()
    })
}

/// What no projection changes of any capture listener.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    mode: CaptureMode,
    fields: Bytes,
    /// Filters before the HTTP connection manager, as fields of a chain.
    before: Bytes,
    filter: hcm::Filter,
}

impl Fixed {
    /// By the options, and by where from a connection leaves that passes through.
    pub(super) fn new(settings: &Settings, leave: Leave) -> Self {
        let redirect_all = settings.mode == CaptureMode::RedirectAll;
        let fields = encoded(&Listener {
            stat_prefix: "capture".to_owned(),
            traffic_direction: TrafficDirection::Outbound.into(),
            per_connection_buffer_limit_bytes: number(BUFFER),
            listener_filters: listener_filters(settings),
            listener_filters_timeout: millis(INSPECTION_MS),
            continue_on_listener_filters_timeout: true,
            filter_chains: redirect_all.then(chains::to_itself).into_iter().collect(),
            default_filter_chain: redirect_all.then(|| chains::passthrough(leave)),
            ..Listener::default()
        });
        let before = chains::before_http(leave);
        Self { mode: settings.mode, fields, before, filter: hcm::Filter::new() }
    }
}

/// What the capture listeners of a part of the mesh have in common: complete chains, and those that
/// still lack the name of a route configuration.
#[derive(Debug)]
pub(super) struct Shared {
    fixed: Fixed,
    tcp: Bytes,
    version: Version,
    http: Vec<Chain>,
}

impl Shared {
    /// Puts the chains of services to the fixed fields.
    pub(super) fn new<'a>(
        fixed: &Fixed,
        of_services: impl Iterator<Item = &'a chains::Chains>,
    ) -> Self {
        let (mut tcp, mut http) = (Vec::new(), vec![chains::http_to_any(fixed.mode)]);
        for chains in of_services {
            tcp.extend(&chains.tcp);
            http.extend(chains.http.iter().cloned());
        }
        tcp.sort_by(|a, b| a.name.cmp(&b.name));
        http.sort_by(|a, b| a.name.cmp(&b.name));
        // Megabytes, in a large mesh: to grow step by step would copy them again and again.
        let len = tcp.iter().map(|chain| chain.body.len() + BEFORE_A_CHAIN).sum();
        let mut fields = BytesMut::with_capacity(len);
        for chain in tcp {
            field::put(FILTER_CHAINS, &chain.body, &mut fields);
        }
        let tcp = fields.freeze();
        Self::of(fixed, tcp, http)
    }

    /// The same chains with other fixed fields.
    pub(super) fn with(&self, fixed: &Fixed) -> Self {
        Self::of(fixed, self.tcp.clone(), self.http.clone())
    }

    fn of(fixed: &Fixed, tcp: Bytes, http: Vec<Chain>) -> Self {
        let version = Version::of(&Rope::new([fixed.fields.clone(), tcp.clone()]));
        Self { fixed: fixed.clone(), tcp, version, http }
    }

    /// The stem of the listeners that name a route configuration. The version is made of those of
    /// the parts, so that the part that is common is hashed once and not for each of them.
    pub(super) fn stem(&self, routes: &str) -> Stem {
        let before = &self.fixed.before;
        let filter = self.fixed.filter.naming(routes);
        let filter_len = filter.iter().map(Bytes::len).sum();
        let mut own = Vec::new();
        let mut announce = BytesMut::new();
        field::announce(FILTERS, filter_len, &mut announce);
        let filter_head = announce.freeze();
        for chain in &self.http {
            let len = chain.body.len() + before.len() + filter_head.len() + filter_len;
            let mut announce = BytesMut::new();
            field::announce(FILTER_CHAINS, len, &mut announce);
            let chain = chain.body.clone();
            own.extend([announce.freeze(), chain, before.clone(), filter_head.clone()]);
            own.extend(filter.clone());
        }
        let own_version = Version::of(&Rope::new(own.iter().cloned()));
        let chunks = [self.fixed.fields.clone(), self.tcp.clone()].into_iter().chain(own);
        Stem { rope: Rope::new(chunks), version: Version::combine([self.version, own_version]) }
    }
}

/// The listener filters in their order. In scoped mode nothing waits for bytes.
fn listener_filters(settings: &Settings) -> Vec<ListenerFilter> {
    let mut filters =
        vec![listener_filter("envoy.filters.listener.original_dst", OriginalDst::default(), None)];
    if settings.mode == CaptureMode::RedirectAll {
        let disabled = server_first(&settings.server_first_ports);
        filters.push(listener_filter(
            "envoy.filters.listener.http_inspector",
            HttpInspector::default(),
            disabled.clone(),
        ));
        filters.push(listener_filter(
            "envoy.filters.listener.tls_inspector",
            TlsInspector::default(),
            disabled,
        ));
    }
    filters
}

fn listener_filter<T: Name + Message>(
    name: &str,
    config: T,
    filter_disabled: Option<Predicate>,
) -> ListenerFilter {
    ListenerFilter {
        name: name.to_owned(),
        config_type: any(config).map(ConfigType::TypedConfig),
        filter_disabled,
    }
}

/// The predicate of the destination ports, as ranges; none for no port. Envoy takes no
/// disjunction of less than two.
fn server_first(ports: &[u16]) -> Option<Predicate> {
    let mut ports: Vec<i32> =
        ports.iter().filter(|port| **port != 0).map(|p| (*p).into()).collect();
    ports.sort_unstable();
    ports.dedup();
    let mut ranges: Vec<Int32Range> = Vec::new();
    for port in ports {
        match ranges.last_mut() {
            Some(range) if range.end == port => range.end = port + 1,
            _ => ranges.push(Int32Range { start: port, end: port + 1 }),
        }
    }
    let predicate = |rule| Predicate { rule: Some(rule) };
    let range = |range| predicate(Rule::DestinationPortRange(range));
    match ranges.as_slice() {
        [] => None,
        [one] => Some(range(*one)),
        _ => {
            let rules = ranges.into_iter().map(range).collect();
            Some(predicate(Rule::OrMatch(MatchSet { rules })))
        }
    }
}
