//! The capture listener and its chains, in both modes.

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::core::v3::{TrafficDirection, address, socket_address};
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::listener_filter_chain_match_predicate::Rule;
use envoy_types::pb::envoy::config::listener::v3::{FilterChain, FilterChainMatch, Listener};
use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3::filter_state_value::Value;
use envoy_types::pb::envoy::extensions::filters::network::set_filter_state::v3::Config;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use prost::Message;

use super::world::{HTTP, TCP, decoded, listener, pod, projection, seen, service, text, view};
use crate::model::{MeshService, Place};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};
use crate::xds::Kind;

/// A match in words.
fn words(on: Option<&FilterChainMatch>) -> String {
    let Some(on) = on else { return "anything".to_owned() };
    let mut words = Vec::new();
    words.extend(on.destination_port.map(|port| format!("port {}", port.value)));
    let ranges = on.prefix_ranges.iter();
    words.extend(ranges.map(|r| format!("{}/{}", r.address_prefix, r.prefix_len.unwrap().value)));
    words.push(on.transport_protocol.clone());
    words.push(on.application_protocols.join(","));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Where a chain leads, in words.
fn leads(chain: &FilterChain) -> String {
    let typed = |at: usize| match &chain.filters[at].config_type {
        Some(ConfigType::TypedConfig(any)) => any.value.as_slice(),
        other => panic!("{other:?}"),
    };
    let names: Vec<_> = chain.filters.iter().map(|f| f.name.rsplit('.').next().unwrap()).collect();
    match names.as_slice() {
        ["http_connection_manager"] => "HTTP".to_owned(),
        ["set_filter_state", "tcp_proxy"] => {
            let config = Config::decode(typed(0)).unwrap();
            let value = config.on_new_connection[0].value.clone();
            let Some(Value::FormatString(format)) = value else { panic!("no value") };
            text(&format)
        }
        ["tcp_proxy"] => match TcpProxy::decode(typed(0)).unwrap().cluster_specifier {
            Some(ClusterSpecifier::Cluster(cluster)) => cluster,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn chains(listener: &Listener) -> BTreeMap<String, (String, String)> {
    let chains = listener.filter_chains.iter().chain(&listener.default_filter_chain);
    chains.map(|c| (c.name.clone(), (words(c.filter_chain_match.as_ref()), leads(c)))).collect()
}

fn services() -> Vec<MeshService> {
    let mut headless = service("shop/peers", &[], &[(6379, TCP)]);
    headless.headless = true;
    vec![
        service("shop/cart", &["10.96.0.1"], &[(80, HTTP)]),
        service("shop/db", &["10.96.0.2", "fd00::2"], &[(5432, TCP), (5433, TCP)]),
        service("shop/mixed", &["10.96.0.3"], &[(80, HTTP), (81, TCP)]),
        service("shop/other", &["10.96.0.4"], &[(81, TCP), (80, HTTP)]),
        headless,
    ]
}

fn rows(table: &[(&str, &str, &str)]) -> BTreeMap<String, (String, String)> {
    let rows = table.iter();
    rows.map(|(name, on, to)| ((*name).to_owned(), ((*on).to_owned(), (*to).to_owned()))).collect()
}

const PROTOCOLS: &str = "raw_buffer http/1.0,http/1.1,h2c";

#[test]
fn redirect_all_has_the_chains_of_the_contract() {
    let listener = listener(&seen(CaptureMode::RedirectAll, services()));
    let tcp = |name: &str| format!("tcp:{name}.shop.aether.internal:%DOWNSTREAM_LOCAL_PORT%");
    let (db, mixed, other) = (tcp("db"), tcp("mixed"), tcp("other"));
    let expected = rows(&[
        ("cap_self", "port 18001", "no_such_cluster"),
        ("cap_http_shop/mixed_10.96.0.3", &format!("10.96.0.3/32 {PROTOCOLS}"), "HTTP"),
        ("cap_http_shop/other_10.96.0.4", &format!("10.96.0.4/32 {PROTOCOLS}"), "HTTP"),
        ("cap_tcp_shop/mixed_10.96.0.3_raw", "10.96.0.3/32 raw_buffer", &mixed),
        ("cap_tcp_shop/other_10.96.0.4_raw", "10.96.0.4/32 raw_buffer", &other),
        ("cap_tcp_shop/db_10.96.0.2", "10.96.0.2/32", &db),
        ("cap_tcp_shop/db_fd00::2", "fd00::2/128", &db),
        ("cap_tcp_shop/mixed_10.96.0.3", "10.96.0.3/32", &mixed),
        ("cap_tcp_shop/other_10.96.0.4", "10.96.0.4/32", &other),
        ("cap_http", PROTOCOLS, "HTTP"),
        ("default", "anything", "passthrough_original_dst"),
    ]);
    assert_eq!(chains(&listener), expected);
    let filters: Vec<_> =
        listener.listener_filters.iter().map(|f| f.name.rsplit('.').next().unwrap()).collect();
    assert_eq!(filters, ["original_dst", "http_inspector", "tls_inspector"]);
    assert_eq!(listener.listener_filters_timeout.unwrap().seconds, 1);
    assert!(listener.continue_on_listener_filters_timeout);
    assert_eq!(listener.traffic_direction, i32::from(TrafficDirection::Outbound));
    assert_eq!(listener.per_connection_buffer_limit_bytes.unwrap().value, 32_768);
    assert!(listener.use_original_dst.is_none());
}

#[test]
fn scoped_has_a_tcp_chain_where_the_default_port_is_tcp() {
    let listener = listener(&seen(CaptureMode::Scoped, services()));
    let tcp = |name: &str| format!("tcp:{name}.shop.aether.internal:%DOWNSTREAM_LOCAL_PORT%");
    let expected = rows(&[
        ("cap_tcp_shop/db_10.96.0.2", "10.96.0.2/32", &tcp("db")),
        ("cap_tcp_shop/db_fd00::2", "fd00::2/128", &tcp("db")),
        ("cap_tcp_shop/other_10.96.0.4", "10.96.0.4/32", &tcp("other")),
        ("cap_http", "anything", "HTTP"),
    ]);
    assert_eq!(chains(&listener), expected);
    let filters: Vec<_> = listener.listener_filters.iter().map(|f| f.name.clone()).collect();
    assert_eq!(filters, ["envoy.filters.listener.original_dst"]);
}

#[test]
fn an_address_that_went_to_another_service_has_no_chain() {
    let mut loser = service("shop/late", &["10.96.0.2"], &[(1, TCP)]);
    loser.owned_ips.clear();
    let listener = listener(&seen(CaptureMode::RedirectAll, services().into_iter().chain([loser])));
    assert!(!listener.filter_chains.iter().any(|chain| chain.name.contains("late")));
}

#[test]
fn the_inspectors_leave_server_first_ports_alone() {
    let disabled = |ports: &[u16]| {
        let settings = Settings { server_first_ports: ports.to_vec(), ..Settings::default() };
        let projection = projection([], [pod("shop/web", Place::default())]);
        let snapshot = Translator::new(settings).translate(&projection).snapshot;
        let filters = listener(&snapshot).listener_filters;
        assert!(filters[0].filter_disabled.is_none());
        assert_eq!(filters[1].filter_disabled, filters[2].filter_disabled);
        let Some(predicate) = &filters[1].filter_disabled else { return Vec::new() };
        let range = |rule: &Rule| match rule {
            Rule::DestinationPortRange(range) => (range.start, range.end),
            other => panic!("{other:?}"),
        };
        match predicate.rule.as_ref().unwrap() {
            Rule::OrMatch(set) => {
                // Envoy refuses a disjunction of one.
                assert!(set.rules.len() > 1);
                set.rules.iter().map(|p| range(p.rule.as_ref().unwrap())).collect()
            }
            rule => vec![range(rule)],
        }
    };
    assert_eq!(disabled(&[]), []);
    assert_eq!(disabled(&[0]), []);
    assert_eq!(disabled(&[3306]), [(3306, 3307)]);
    assert_eq!(disabled(&[65535]), [(65535, 65536)]);
    assert_eq!(disabled(&[22, 21, 22]), [(21, 23)]);
    assert_eq!(disabled(&[3306, 22, 21]), [(21, 23), (3306, 3307)]);
}

#[test]
fn listeners_are_bound_to_loopback_and_to_ipv6_where_the_pod_has_it() {
    let mut six = pod("shop/six", Place::default());
    six.ipv6 = true;
    let projection = projection([], [pod("shop/web", Place::default()), six]);
    let dns = Some(DnsFilter::default());
    let settings = Settings { dns, ..Settings::default() };
    let snapshot = Translator::new(settings).translate(&projection).snapshot;
    let socket = |address: &address::Address| match address {
        address::Address::SocketAddress(socket) => {
            let Some(socket_address::PortSpecifier::PortValue(port)) = socket.port_specifier else {
                panic!("no port")
            };
            let udp = socket.protocol == i32::from(socket_address::Protocol::Udp);
            format!("{}:{port}{}", socket.address, if udp { "/udp" } else { "" })
        }
        other => panic!("{other:?}"),
    };
    let bound = |node: &str| -> BTreeMap<String, Vec<String>> {
        let listeners: BTreeMap<String, Listener> =
            decoded(&view(&snapshot, node, "delta"), Kind::Listener);
        let sockets = |listener: &Listener| {
            let more = listener.additional_addresses.iter().map(|more| &more.address);
            let all = [&listener.address].into_iter().chain(more);
            all.map(|a| socket(a.as_ref().unwrap().address.as_ref().unwrap())).collect()
        };
        listeners.iter().map(|(name, l)| (name.clone(), sockets(l))).collect()
    };
    let v4 = bound("pod/shop/web");
    assert_eq!(v4["capture_shop_web"], ["127.0.0.1:18001"]);
    assert_eq!(v4["dns_shop_web"], ["127.0.0.1:18053/udp"]);
    let both = bound("pod/shop/six");
    assert_eq!(both["capture_shop_six"], ["127.0.0.1:18001", "::1:18001"]);
    assert_eq!(both["dns_shop_six"], ["127.0.0.1:18053/udp", "::1:18053/udp"]);
}
