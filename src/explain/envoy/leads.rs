//! Network filters: where a filter chain leads.

use envoy_types::pb::envoy::config::core::v3::SubstitutionFormatString;
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain};
use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3::filter_state_value::{
    Key, Value,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use envoy_types::pb::envoy::extensions::filters::network::set_filter_state::v3::Config as SetFilterState;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use envoy_types::pb::google::protobuf::Any;
use prost::{Message, Name};

use super::format::filled;
use super::resources::Undecodable;

/// What names the cluster of a connection, in place of the one that `tcp_proxy` names.
const CLUSTER_STATE: &str = "envoy.tcp_proxy.cluster";

/// Where a filter chain leads.
#[derive(Debug, Clone, PartialEq)]
pub enum Leads {
    /// To the routes of this table.
    Http {
        /// The table's name.
        routes: String,
        /// How the bodies of the proxy's own answers look.
        replies: Option<SubstitutionFormatString>,
    },
    /// To a cluster.
    Tcp {
        /// Its name.
        cluster: String,
    },
}

impl Leads {
    /// Where a chain leads a connection to this port.
    pub fn of(chain: &FilterChain, port: u16) -> Result<Self, Undecodable> {
        let wrong = |why: &str| Undecodable::new(format!("the filter chain {}", chain.name), why);
        let read = |error: prost::DecodeError| wrong(&error.to_string());
        let mut state = None;
        for any in chain.filters.iter().filter_map(config) {
            if let Some(set) = of_type::<SetFilterState>(any) {
                state = cluster_state(&set.map_err(read)?, port).or(state);
            } else if let Some(proxy) = of_type::<TcpProxy>(any) {
                let own = match proxy.map_err(read)?.cluster_specifier {
                    Some(ClusterSpecifier::Cluster(cluster)) => Some(cluster),
                    _ => None,
                };
                let cluster = state.or(own).ok_or_else(|| wrong("it names no cluster"))?;
                return Ok(Self::Tcp { cluster });
            } else if let Some(manager) = of_type::<HttpConnectionManager>(any) {
                let manager = manager.map_err(read)?;
                let Some(RouteSpecifier::Rds(rds)) = manager.route_specifier else {
                    return Err(wrong("its routes do not come by name"));
                };
                let replies = manager.local_reply_config.and_then(|config| {
                    config.mappers.into_iter().find_map(|mapper| mapper.body_format_override)
                });
                return Ok(Self::Http { routes: rds.route_config_name, replies });
            }
        }
        Err(wrong("it leads nowhere"))
    }
}

/// The body of an answer of the proxy's own, for a code detail and the body that is inside.
pub fn reply(replies: Option<&SubstitutionFormatString>, detail: &str, body: &str) -> String {
    let words = [("%RESPONSE_CODE_DETAILS%", detail), ("%LOCAL_REPLY_BODY%", body)];
    replies.and_then(|replies| filled(replies, &words)).unwrap_or_else(|| body.to_owned())
}

fn cluster_state(set: &SetFilterState, port: u16) -> Option<String> {
    let port = port.to_string();
    set.on_new_connection.iter().find_map(|value| {
        let (Some(Key::ObjectKey(key)), Some(Value::FormatString(format))) =
            (&value.key, &value.value)
        else {
            return None;
        };
        let words = [("%DOWNSTREAM_LOCAL_PORT%", port.as_str())];
        (key == CLUSTER_STATE).then(|| filled(format, &words)).flatten()
    })
}

fn config(filter: &Filter) -> Option<&Any> {
    match &filter.config_type {
        Some(ConfigType::TypedConfig(any)) => Some(any),
        _ => None,
    }
}

/// The configuration as this type, where it is of it.
fn of_type<T: Message + Name + Default>(any: &Any) -> Option<Result<T, prost::DecodeError>> {
    let name = any.type_url.rsplit('/').next()?;
    (name == T::full_name()).then(|| T::decode(any.value.as_slice()))
}
