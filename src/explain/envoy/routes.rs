//! Virtual hosts and routes: which one takes a request.

use envoy_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{
    HeaderMatcher, Route, RouteConfiguration, VirtualHost,
};
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::format::filled;
use super::resources::Undecodable;

/// What a table does with a request for `/` under some authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// The virtual host.
    pub host: String,
    /// The domain of it that matched.
    pub domain: String,
    /// What the route asks of the authority, in words; empty: nothing.
    pub on: String,
    /// The cluster that the route leads to, or the status and body that it answers with.
    pub to: Result<String, (u32, String)>,
}

/// What a table does with a GET of `/` under this authority; `None` where nothing matches.
pub fn route(table: &RouteConfiguration, authority: &str) -> Result<Option<Routed>, Undecodable> {
    let wrong = |host: &VirtualHost, why: &str| {
        Undecodable::new(format!("the virtual host {}", host.name), why)
    };
    let Some((host, domain)) = virtual_host(table, authority) else { return Ok(None) };
    for route in &host.routes {
        let matches = matches(route, authority);
        let matches = matches.map_err(|why| wrong(host, why))?;
        if !matches {
            continue;
        }
        let to = match &route.action {
            Some(Action::Route(action)) => match &action.cluster_specifier {
                Some(ClusterSpecifier::Cluster(cluster)) => Ok(cluster.clone()),
                _ => return Err(wrong(host, "a route does not name its cluster")),
            },
            Some(Action::DirectResponse(answer)) => {
                let words = [("%REQ(:AUTHORITY)%", authority)];
                let body = answer.body_format.as_ref().and_then(|format| filled(format, &words));
                Err((answer.status, body.unwrap_or_default()))
            }
            _ => return Err(wrong(host, "a route has an action that explain does not know")),
        };
        let (host, domain) = (host.name.clone(), domain.to_owned());
        return Ok(Some(Routed { host, domain, on: asked(route), to }));
    }
    Ok(None)
}

/// The virtual host of an authority, and its domain: an exact one before the longest `*.suffix`,
/// that before the longest `prefix.*`, and `*` last.
fn virtual_host<'a>(
    table: &'a RouteConfiguration,
    authority: &str,
) -> Option<(&'a VirtualHost, &'a str)> {
    let lower = authority.to_ascii_lowercase();
    let host = match port_at(&lower).filter(|_| table.ignore_port_in_host_matching) {
        Some(at) => lower.get(..at).unwrap_or(&lower),
        None => &lower,
    };
    let domains = table.virtual_hosts.iter().flat_map(|virtual_host| {
        virtual_host.domains.iter().map(move |domain| (virtual_host, domain.as_str()))
    });
    let fit = |domain: &str| -> Option<(u8, usize)> {
        let lower = domain.to_ascii_lowercase();
        let long = |rest: &str| (rest.len() < host.len()).then_some(rest.len());
        match (lower.strip_prefix('*'), lower.strip_suffix('*')) {
            (Some(""), _) => Some((0, 0)),
            (Some(suffix), _) => long(suffix).filter(|_| host.ends_with(suffix)).map(|n| (2, n)),
            (_, Some(prefix)) => long(prefix).filter(|_| host.starts_with(prefix)).map(|n| (1, n)),
            _ => (lower == host).then_some((3, 0)),
        }
    };
    let fits = domains.filter_map(|(host, domain)| Some((fit(domain)?, host, domain)));
    fits.max_by_key(|(fit, ..)| *fit).map(|(_, host, domain)| (host, domain))
}

/// Where the colon of a port stands in an authority.
fn port_at(authority: &str) -> Option<usize> {
    let colon = authority.rfind(':')?;
    // The colons of an IPv6 address stand in brackets.
    authority.rfind(']').is_none_or(|bracket| bracket < colon).then_some(colon)
}

/// Whether a route takes a GET of `/`.
fn matches(route: &Route, authority: &str) -> Result<bool, &'static str> {
    let Some(on) = &route.r#match else { return Ok(false) };
    let path = match &on.path_specifier {
        Some(PathSpecifier::Prefix(prefix)) => "/".starts_with(prefix.as_str()),
        Some(PathSpecifier::Path(path)) => path == "/",
        Some(PathSpecifier::ConnectMatcher(_)) => false,
        _ => return Err("a route matches paths in a way that explain does not know"),
    };
    if !path {
        return Ok(false);
    }
    for header in &on.headers {
        if !header_matches(header, authority)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn header_matches(header: &HeaderMatcher, authority: &str) -> Result<bool, &'static str> {
    const BEYOND: &str = "a route matches headers in a way that explain does not know";
    let pattern = pattern(header).filter(|_| header.name == ":authority").ok_or(BEYOND)?;
    let found = match pattern {
        MatchPattern::Exact(text) => authority == text,
        MatchPattern::Prefix(text) => authority.starts_with(text),
        MatchPattern::Suffix(text) => authority.ends_with(text),
        MatchPattern::Contains(text) => authority.contains(text),
        _ => return Err(BEYOND),
    };
    Ok(found != header.invert_match)
}

fn pattern(header: &HeaderMatcher) -> Option<&MatchPattern> {
    match &header.header_match_specifier {
        Some(HeaderMatchSpecifier::StringMatch(on)) if !on.ignore_case => on.match_pattern.as_ref(),
        _ => None,
    }
}

/// What a route asks of the authority, in words.
fn asked(route: &Route) -> String {
    let headers = route.r#match.iter().flat_map(|on| &on.headers);
    let words = headers.filter_map(|header| {
        match (pattern(header)?, header.invert_match) {
            (MatchPattern::Contains(text), true) if text == ":" => {
                return Some("names no port".to_owned());
            }
            (MatchPattern::Suffix(text), false) if text == ":" => {
                return Some("ends in a colon".to_owned());
            }
            (MatchPattern::Suffix(text), false) if text.starts_with(':') => {
                return Some(format!("names the port {}", text.trim_start_matches(':')));
            }
            _ => {}
        }
        let (verb, text) = match pattern(header)? {
            MatchPattern::Exact(text) => ("is", text),
            MatchPattern::Prefix(text) => ("begins with", text),
            MatchPattern::Suffix(text) => ("ends in", text),
            MatchPattern::Contains(text) => ("holds", text),
            _ => return None,
        };
        let not = if header.invert_match { "not: " } else { "" };
        Some(format!("{not}{verb} {text:?}"))
    });
    words.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests;
