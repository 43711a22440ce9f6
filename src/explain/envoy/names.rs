//! The DNS listener: what it answers from its own table.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::listener::v3::listener_filter::ConfigType;
use envoy_types::pb::envoy::data::dns::v3::dns_table::dns_endpoint::EndpointConfig;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::DnsFilterConfig;
use envoy_types::pb::envoy::extensions::filters::udp::dns_filter::v3::dns_filter_config::server_context_config::ConfigSource;
use prost::Message;

use super::resources::{Undecodable, decoded};
use crate::xds::{Kind, View};

/// The table of a DNS listener.
#[derive(Debug)]
pub struct NamesListener {
    config: DnsFilterConfig,
}

impl NamesListener {
    /// The listener of a name; `None` where the view has none.
    pub fn of(view: &View, name: &str) -> Result<Option<Self>, Undecodable> {
        let Some(listener) = decoded::<Listener>(view, Kind::Listener, name)? else {
            return Ok(None);
        };
        let config = listener.listener_filters.iter().find_map(|filter| {
            let Some(ConfigType::TypedConfig(any)) = &filter.config_type else { return None };
            any.type_url.ends_with(".DnsFilterConfig").then_some(any)
        });
        let wrong = |why: String| Undecodable::new(format!("the listener {name}"), why);
        let config = config.ok_or_else(|| wrong("it has no dns_filter".to_owned()))?;
        let config = DnsFilterConfig::decode(config.value.as_slice());
        config.map(|config| Some(Self { config })).map_err(|error| wrong(error.to_string()))
    }

    /// Whether names that its table lacks are asked elsewhere.
    pub fn forwards(&self) -> bool {
        self.config.client_config.is_some()
    }

    /// The addresses of a name, which it takes for another one in another case.
    pub fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let server = self.config.server_config.as_ref();
        let Some(ConfigSource::InlineDnsTable(table)) =
            server.and_then(|s| s.config_source.as_ref())
        else {
            return Vec::new();
        };
        let domains = table.virtual_domains.iter().filter(|domain| domain.name == name);
        let lists = domains.filter_map(|domain| {
            match domain.endpoint.as_ref()?.endpoint_config.as_ref()? {
                EndpointConfig::AddressList(list) => Some(&list.address),
                _ => None,
            }
        });
        lists.flatten().filter_map(|text| text.parse().ok()).collect()
    }
}
