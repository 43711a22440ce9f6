//! Listener filters: whether the first bytes of a connection are looked at.

use envoy_types::pb::envoy::config::listener::v3::listener_filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::listener_filter_chain_match_predicate::Rule;
use envoy_types::pb::envoy::config::listener::v3::{
    ListenerFilter, ListenerFilterChainMatchPredicate as Predicate,
};

use super::resources::Capture;

/// Which inspectors look at a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspects {
    /// Whether the listener has inspectors at all.
    pub any: bool,
    /// The one for HTTP looks at this port.
    pub http: bool,
    /// The one for TLS does.
    pub tls: bool,
}

impl Capture {
    /// Which inspectors look at connections to a port.
    pub fn inspects(&self, port: u16) -> Inspects {
        let of = |message: &str| {
            let inspector = self.0.listener_filters.iter().find(|filter| is(filter, message));
            inspector.map(|filter| {
                !filter.filter_disabled.as_ref().is_some_and(|disabled| holds(disabled, port))
            })
        };
        let (http, tls) = (of("HttpInspector"), of("TlsInspector"));
        Inspects {
            any: http.is_some() || tls.is_some(),
            http: http.unwrap_or(false),
            tls: tls.unwrap_or(false),
        }
    }
}

fn is(filter: &ListenerFilter, message: &str) -> bool {
    let Some(ConfigType::TypedConfig(config)) = &filter.config_type else { return false };
    config.type_url.rsplit('.').next() == Some(message)
}

fn holds(predicate: &Predicate, port: u16) -> bool {
    match &predicate.rule {
        Some(Rule::OrMatch(set)) => set.rules.iter().any(|rule| holds(rule, port)),
        Some(Rule::AndMatch(set)) => set.rules.iter().all(|rule| holds(rule, port)),
        Some(Rule::NotMatch(rule)) => !holds(rule, port),
        Some(Rule::AnyMatch(any)) => *any,
        Some(Rule::DestinationPortRange(range)) => {
            (range.start..range.end).contains(&i32::from(port))
        }
        None => false,
    }
}
