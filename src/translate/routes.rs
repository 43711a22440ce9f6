//! Virtual hosts: which cluster a request to a service's host goes to, by the port that it names.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::Bytes;
use envoy_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use envoy_types::pb::envoy::config::route::v3::retry_policy::retry_host_predicate::ConfigType;
use envoy_types::pb::envoy::config::route::v3::retry_policy::{RetryBackOff, RetryHostPredicate};
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::{ClusterSpecifier, UpgradeConfig};
use envoy_types::pb::envoy::config::route::v3::route_match::{ConnectMatcher, PathSpecifier};
use envoy_types::pb::envoy::config::route::v3::{
    DirectResponseAction, HeaderMatcher, RetryPolicy, Route, RouteAction, RouteMatch, VirtualHost,
};
use envoy_types::pb::envoy::extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate;
use envoy_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::naming::{self, MESH_PORT, PASSTHROUGH};
use super::proto::{any, encoded, format, millis, never, number};
use super::{CaptureMode, Settings};
use crate::model::MeshService;

/// How many ports a body names: Envoy refuses bodies beyond 4,096 bytes.
const NAMED_PORTS: usize = 32;

/// The domains, encoded as fields of a virtual host.
pub(super) fn domains(domains: BTreeSet<String>) -> Bytes {
    encoded(&VirtualHost { domains: domains.into_iter().collect(), ..VirtualHost::default() })
}

/// The retry policy, encoded as a field of a virtual host: only what no backend has seen whole is
/// sent again, and nothing that a backend answered.
pub(super) fn retries() -> Bytes {
    let others = RetryHostPredicate {
        name: "envoy.retry_host_predicates.previous_hosts".to_owned(),
        config_type: any(PreviousHostsPredicate {}).map(ConfigType::TypedConfig),
    };
    let policy = RetryPolicy {
        retry_on: "connect-failure,refused-stream,reset-before-request".to_owned(),
        num_retries: number(2),
        retry_host_predicate: vec![others],
        host_selection_retry_max_attempts: 3,
        retry_back_off: Some(RetryBackOff { base_interval: millis(25), max_interval: millis(250) }),
        ..RetryPolicy::default()
    };
    encoded(&VirtualHost { retry_policy: Some(policy), ..VirtualHost::default() })
}

/// The routes of a service, encoded as fields of its virtual host.
pub(super) fn of_service(settings: &Settings, service: &MeshService) -> Bytes {
    let to = |port| to_cluster(naming::http_cluster(&settings.names, service, port));
    let unnamed = service.port(80).map_or(service.default_port, |port| port.number);
    // The host is one of the domains, so a colon is the port's or that of an IPv6 address, which
    // stands in brackets.
    let mut routes = vec![route(Some(no_colon()), to(unnamed))];
    for port in &service.ports {
        routes.push(route(Some(ends_in(format!(":{}", port.number))), to(port.number)));
    }
    if service.port(MESH_PORT).is_none() {
        routes.push(route(Some(ends_in(format!(":{MESH_PORT}"))), to(service.default_port)));
    }
    routes.push(route(Some(ends_in(":".to_owned())), to(unnamed)));
    if service.owned_ips.iter().any(IpAddr::is_ipv6) {
        routes.push(route(Some(ends_in("]".to_owned())), to(unnamed)));
    }
    // Clients of a headless Service speak to the ports of its pods.
    let passes = service.headless && settings.mode == CaptureMode::RedirectAll;
    let other = if passes { to_cluster(PASSTHROUGH.to_owned()) } else { no_such_port(service) };
    routes.push(route(None, other));
    encoded(&VirtualHost { routes, ..VirtualHost::default() })
}

/// The catch-all, encoded but for its name.
pub(super) fn catch_all(mode: CaptureMode) -> Bytes {
    let (connect, rest) = match mode {
        CaptureMode::RedirectAll => {
            let mut connect = action(PASSTHROUGH.to_owned());
            connect.upgrade_configs =
                vec![UpgradeConfig { upgrade_type: "CONNECT".to_owned(), ..Default::default() }];
            (Action::Route(connect), to_cluster(PASSTHROUGH.to_owned()))
        }
        CaptureMode::Scoped => {
            let body = "%REQ(:AUTHORITY)% is no mesh service";
            (not_found(body.to_owned()), not_found(body.to_owned()))
        }
    };
    let connects = Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::ConnectMatcher(ConnectMatcher {})),
            ..RouteMatch::default()
        }),
        action: Some(connect),
        ..Route::default()
    };
    let domains = vec!["*".to_owned()];
    encoded(&VirtualHost {
        domains,
        routes: vec![connects, route(None, rest)],
        ..VirtualHost::default()
    })
}

/// A route for every path.
fn route(authority: Option<HeaderMatcher>, action: Action) -> Route {
    let on = RouteMatch {
        path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
        headers: authority.into_iter().collect(),
        ..RouteMatch::default()
    };
    Route { r#match: Some(on), action: Some(action), ..Route::default() }
}

fn to_cluster(cluster: String) -> Action {
    Action::Route(action(cluster))
}

fn action(cluster: String) -> RouteAction {
    RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster)),
        timeout: never(),
        idle_timeout: never(),
        ..RouteAction::default()
    }
}

fn authority(pattern: MatchPattern, invert_match: bool) -> HeaderMatcher {
    HeaderMatcher {
        name: ":authority".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(pattern),
            ..StringMatcher::default()
        })),
        invert_match,
        ..HeaderMatcher::default()
    }
}

fn ends_in(suffix: String) -> HeaderMatcher {
    authority(MatchPattern::Suffix(suffix), false)
}

fn no_colon() -> HeaderMatcher {
    authority(MatchPattern::Contains(":".to_owned()), true)
}

fn not_found(body: String) -> Action {
    Action::DirectResponse(DirectResponseAction {
        status: 404,
        body_format: Some(format(body)),
        ..DirectResponseAction::default()
    })
}

fn no_such_port(service: &MeshService) -> Action {
    let ports = ports_in_words(service);
    not_found(format!(
        "%REQ(:AUTHORITY)% names the service {}, which has no such port: it has {ports}",
        service.key
    ))
}

/// `80`, `80 and 9090`, `80, 81 and 9090`.
fn ports_in_words(service: &MeshService) -> String {
    let mut words = service.ports.iter().map(|port| port.number.to_string()).collect::<Vec<_>>();
    if words.len() > NAMED_PORTS {
        let more = words.len() - NAMED_PORTS;
        words.truncate(NAMED_PORTS);
        words.push(format!("{more} more"));
    }
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}
