//! The DNS listener's table and where it forwards to.

use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::listener::v3::listener_filter::ConfigType;
use envoy_types::pb::envoy::data::dns::v3::dns_table::dns_endpoint::EndpointConfig;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::DnsFilterConfig;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::dns_filter_config::server_context_config::ConfigSource;
use prost::Message;

use super::world::{HTTP, TCP, decoded, pod, projection, service, view};
use crate::model::{MeshService, Place};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};
use crate::xds::Kind;

fn config(listener: &Listener) -> DnsFilterConfig {
    let Some(ConfigType::TypedConfig(any)) = &listener.listener_filters[0].config_type else {
        panic!("{listener:?}")
    };
    DnsFilterConfig::decode(any.value.as_slice()).unwrap()
}

/// The names of the table with their addresses, in its order.
pub(super) fn table(listener: &Listener) -> Vec<(String, Vec<String>)> {
    let source = config(listener).server_config.unwrap().config_source.unwrap();
    let ConfigSource::InlineDnsTable(table) = source else { panic!("{source:?}") };
    let domains = table.virtual_domains.into_iter().map(|domain| {
        assert_eq!(domain.answer_ttl.unwrap().seconds, 30);
        let Some(EndpointConfig::AddressList(list)) = domain.endpoint.unwrap().endpoint_config
        else {
            panic!("{}", domain.name)
        };
        // Envoy refuses a name without an address.
        assert!(!list.address.is_empty(), "{}", domain.name);
        (domain.name, list.address)
    });
    domains.collect()
}

fn listener(upstream: &[&str], services: Vec<MeshService>) -> Listener {
    let upstream = upstream.iter().map(|server| server.parse().unwrap()).collect();
    let dns = Some(DnsFilter { upstream });
    let settings = Settings { dns, mode: CaptureMode::Scoped, ..Settings::default() };
    let projection = projection(services, [pod("shop/web", Place::default())]);
    let snapshot = Translator::new(settings).translate(&projection).snapshot;
    decoded(&view(&snapshot, "pod/shop/web", "delta"), Kind::Listener)
        .remove("dns_shop_web")
        .unwrap()
}

#[test]
fn the_table_has_every_name_that_has_an_address() {
    let mut headless = service("shop/peers", &[], &[(80, HTTP)]);
    headless.headless = true;
    let mut second = service("bank/cart", &["10.96.0.3"], &[(80, HTTP)]);
    second.owns_short_name = false;
    let services = vec![
        service("shop/cart", &["10.96.0.1", "fd00::1"], &[(80, HTTP)]),
        service("shop/db", &["fd00::2"], &[(5432, TCP)]),
        second,
        headless,
        service("shop/pending", &[], &[(80, HTTP)]),
    ];
    let rows: Vec<_> = [
        ("cart.aether.internal", vec!["10.96.0.1", "fd00::1"]),
        ("cart.bank.aether.internal", vec!["10.96.0.3"]),
        ("cart.shop.aether.internal", vec!["10.96.0.1", "fd00::1"]),
        ("db.aether.internal", vec!["fd00::2"]),
        ("db.shop.aether.internal", vec!["fd00::2"]),
    ]
    .into_iter()
    .map(|(name, ips)| (name.to_owned(), ips.into_iter().map(str::to_owned).collect()))
    .collect();
    assert_eq!(table(&listener(&[], services)), rows);
    assert_eq!(table(&listener(&[], vec![])), []);
}

#[test]
fn unknown_names_are_forwarded_where_there_is_an_upstream() {
    assert!(config(&listener(&[], vec![])).client_config.is_none());
    let client =
        config(&listener(&["10.0.0.10:53", "[fd00::a]:53"], vec![])).client_config.unwrap();
    // Envoy's own limits.
    assert!(client.max_pending_lookups >= 1 && client.resolver_timeout.unwrap().seconds >= 1);
    assert!(client.typed_dns_resolver_config.is_some());
}
