//! Envoy's matching of filter chains and virtual hosts, over its config dump.

use std::net::SocketAddr;

use serde_json::Value;

/// What Envoy knows of a connection when it chooses a chain.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Where the client was going.
    pub to: SocketAddr,
    /// Whether it spoke TLS.
    pub tls: bool,
    /// What the HTTP inspector found: `http/1.0`, `http/1.1`, `h2c`, or nothing.
    pub protocol: Option<&'static str>,
}

/// The name of the chain that takes this connection on this listener; none where it is closed. As Envoy's
/// documentation has it: destination port, address, transport and application protocol in this order, the more
/// specific first, and no way back from a narrower match.
pub fn chain(config_dump: &Value, listener: &str, arrival: Arrival) -> Option<String> {
    let listener = find(config_dump, "dynamic_listeners", listener)?;
    let mut left: Vec<&Value> = list(listener.get("filter_chains")).collect();
    narrow(&mut left, |on| {
        let port = on?.get("destination_port")?.as_u64()?;
        Some(if port == u64::from(arrival.to.port()) { Fit::Yes } else { Fit::No })
    });
    narrow(&mut left, |on| {
        let mut ranges = list(on?.get("prefix_ranges")).peekable();
        ranges.peek()?;
        let ip = arrival.to.ip().to_string();
        // Ours are all whole addresses.
        let hit = ranges.any(|range| text(range, "address_prefix") == Some(ip.as_str()));
        Some(if hit { Fit::Yes } else { Fit::No })
    });
    narrow(&mut left, |on| {
        let wanted = text(on?, "transport_protocol")?;
        Some(if wanted == if arrival.tls { "tls" } else { "raw_buffer" } {
            Fit::Yes
        } else {
            Fit::No
        })
    });
    narrow(&mut left, |on| {
        let mut wanted = list(on?.get("application_protocols")).peekable();
        wanted.peek()?;
        let hit = wanted.any(|one| one.as_str() == arrival.protocol);
        Some(if hit { Fit::Yes } else { Fit::No })
    });
    let found = left.first().copied().or_else(|| listener.get("default_filter_chain"))?;
    Some(text(found, "name").unwrap_or("(without a name)").to_owned())
}

/// The name of the virtual host that takes this host (a port of it does not count) in the table of a listener's
/// namespace or pod, the catch-all where no other does.
pub fn virtual_host(config_dump: &Value, table: &str, host: &str) -> Option<String> {
    let table = find(config_dump, "dynamic_route_configs", table)?;
    let host = host.to_ascii_lowercase();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => &host,
    };
    let has = |virtual_host: &&Value, domain: &str| {
        let mut domains = list(virtual_host.get("domains")).filter_map(Value::as_str);
        domains.any(|one| one.eq_ignore_ascii_case(domain))
    };
    let all = || list(table.get("virtual_hosts"));
    let found = all().find(|one| has(one, host)).or_else(|| all().find(|one| has(one, "*")))?;
    text(found, "name").map(str::to_owned)
}

enum Fit {
    Yes,
    No,
}

/// Keeps those that say yes; where none does, those that have nothing to say.
fn narrow(left: &mut Vec<&Value>, fit: impl Fn(Option<&Value>) -> Option<Fit>) {
    let of = |chain: &&Value| fit(chain.get("filter_chain_match"));
    if left.iter().any(|chain| matches!(of(chain), Some(Fit::Yes))) {
        left.retain(|chain| matches!(of(chain), Some(Fit::Yes)));
    } else {
        left.retain(|chain| of(chain).is_none());
    }
}

/// The resource of this name in that part of the dump, whichever message wraps it.
fn find<'a>(dump: &'a Value, part: &str, name: &str) -> Option<&'a Value> {
    let parts = list(dump.get("configs")).flat_map(|config| list(config.get(part)));
    let mut resources = parts.filter_map(|entry| {
        entry.pointer("/active_state/listener").or_else(|| entry.get("route_config"))
    });
    resources.find(|resource| text(resource, "name") == Some(name))
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::{Arrival, chain, virtual_host};
    use serde_json::{Value, json};

    fn dump() -> Value {
        let http = json!(["http/1.0", "http/1.1", "h2c"]);
        let on = |ip: &str| json!([{"address_prefix": ip, "prefix_len": 32}]);
        json!({"configs": [
            {"dynamic_listeners": [{"active_state": {"listener": {
                "name": "capture",
                "filter_chains": [
                    {"name": "self", "filter_chain_match": {"destination_port": 18001}},
                    {"name": "tcp", "filter_chain_match": {"prefix_ranges": on("10.96.0.1")}},
                    {"name": "mixed_tcp", "filter_chain_match": {"prefix_ranges": on("10.96.0.2")}},
                    {"name": "mixed_raw", "filter_chain_match": {
                        "prefix_ranges": on("10.96.0.2"), "transport_protocol": "raw_buffer"}},
                    {"name": "mixed_http", "filter_chain_match": {"prefix_ranges": on("10.96.0.2"),
                        "transport_protocol": "raw_buffer", "application_protocols": http}},
                    {"name": "http", "filter_chain_match": {
                        "transport_protocol": "raw_buffer", "application_protocols": http}},
                ],
                "default_filter_chain": {"name": "default"},
            }}}]},
            {"dynamic_route_configs": [{"route_config": {"name": "table", "virtual_hosts": [
                {"name": "web", "domains": ["web", "web.shop", "10.96.0.3", "[fd00::3]"]},
                {"name": "any", "domains": ["*"]},
            ]}}]},
        ]})
    }

    #[test]
    fn chains_match_as_envoy_matches_them() {
        let h1 = Some("http/1.1");
        for (to, tls, protocol, expected) in [
            ("127.0.0.1:18001", false, h1, "self"),
            ("10.96.0.1:80", false, h1, "tcp"),
            ("10.96.0.1:80", true, None, "tcp"),
            ("10.96.0.2:80", false, h1, "mixed_http"),
            ("10.96.0.2:80", false, None, "mixed_raw"),
            ("10.96.0.2:80", true, None, "mixed_tcp"),
            ("10.96.0.3:80", false, Some("h2c"), "http"),
            ("10.96.0.3:80", false, None, "default"),
            ("10.96.0.3:80", true, None, "default"),
        ] {
            let Ok(to) = to.parse() else { unreachable!("{to} is an address") };
            let found = chain(&dump(), "capture", Arrival { to, tls, protocol });
            assert_eq!(found.as_deref(), Some(expected), "{to} {tls} {protocol:?}");
        }
    }

    #[test]
    fn virtual_hosts_match_without_case_and_port() {
        for (host, expected) in [
            ("web", "web"),
            ("WEB.Shop:8080", "web"),
            ("10.96.0.3:80", "web"),
            ("[fd00::3]", "web"),
            ("[fd00::3]:80", "web"),
            ("web.pay", "any"),
        ] {
            assert_eq!(virtual_host(&dump(), "table", host).as_deref(), Some(expected), "{host}");
        }
        assert_eq!(virtual_host(&dump(), "missing", "web"), None);
    }
}
