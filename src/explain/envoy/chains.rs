//! Filter chains: which one takes a connection.
//!
//! As Envoy has it: destination port, address, server name, transport and application protocol in
//! this order, the more specific first, and no way back from a narrower match.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::listener::v3::{FilterChain, FilterChainMatch};

use super::resources::{Capture, Undecodable};
use crate::index::IpRange;

/// What the listener knows of a connection when it chooses a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where it was going; `None` for an address that nobody here knows.
    pub to: Option<IpAddr>,
    /// The port there.
    pub port: u16,
    /// Whether TLS was recognised.
    pub tls: bool,
    /// What HTTP was recognised as.
    pub protocol: Option<&'static str>,
}

impl Capture {
    /// The chain that takes a connection; `None` where it is closed.
    pub fn chain(&self, arrival: &Arrival) -> Result<Option<&FilterChain>, Undecodable> {
        let mut left: Vec<&FilterChain> = self.0.filter_chains.iter().collect();
        if let Some(strange) = left.iter().find(|chain| on(chain).is_some_and(is_strange)) {
            let what = format!("the filter chain {}", strange.name);
            return Err(Undecodable::new(what, "it matches by what explain does not know"));
        }
        narrow(&mut left, |on| {
            let port = on.destination_port?.value;
            Some(u32::from(port == u32::from(arrival.port)))
        });
        narrow(&mut left, |on| {
            if on.prefix_ranges.is_empty() {
                return None;
            }
            let longest = on.prefix_ranges.iter().filter_map(|range| {
                let address = range.address_prefix.parse().ok()?;
                let width = u8::try_from(range.prefix_len.unwrap_or_default().value).ok()?;
                let holds = IpRange { address, width }.holds(arrival.to?);
                holds.then_some(u32::from(width) + 1)
            });
            Some(longest.max().unwrap_or_default())
        });
        narrow(&mut left, |on| {
            let detected = if arrival.tls { "tls" } else { "raw_buffer" };
            let wanted = &on.transport_protocol;
            (!wanted.is_empty()).then(|| u32::from(wanted == detected))
        });
        narrow(&mut left, |on| {
            let wanted = &on.application_protocols;
            let found = || wanted.iter().any(|one| Some(one.as_str()) == arrival.protocol);
            (!wanted.is_empty()).then(|| u32::from(found()))
        });
        Ok(left.first().copied().or(self.0.default_filter_chain.as_ref()))
    }
}

fn on(chain: &FilterChain) -> Option<&FilterChainMatch> {
    chain.filter_chain_match.as_ref()
}

/// Whether a chain asks for more than what is compared here.
fn is_strange(on: &FilterChainMatch) -> bool {
    let known = FilterChainMatch {
        destination_port: on.destination_port,
        prefix_ranges: on.prefix_ranges.clone(),
        transport_protocol: on.transport_protocol.clone(),
        application_protocols: on.application_protocols.clone(),
        ..FilterChainMatch::default()
    };
    *on != known
}

/// Keeps the chains that fit best; where none fits, those that do not ask. `fit` is how well one
/// does, 0 where it does not, `None` where it does not ask.
fn narrow(left: &mut Vec<&FilterChain>, fit: impl Fn(&FilterChainMatch) -> Option<u32>) {
    let of = |chain: &FilterChain| on(chain).and_then(&fit);
    let best = left.iter().filter_map(|chain| of(chain)).max().filter(|best| *best > 0);
    left.retain(|chain| of(chain) == best);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use envoy_types::pb::envoy::config::core::v3::CidrRange;
    use envoy_types::pb::envoy::config::listener::v3::Listener;
    use envoy_types::pb::google::protobuf::UInt32Value;

    use super::*;

    fn chain(name: &str, on: FilterChainMatch) -> FilterChain {
        FilterChain { name: name.into(), filter_chain_match: Some(on), ..Default::default() }
    }

    fn range(address: &str, width: u32) -> FilterChainMatch {
        let range = CidrRange {
            address_prefix: address.into(),
            prefix_len: Some(UInt32Value { value: width }),
        };
        FilterChainMatch { prefix_ranges: vec![range], ..Default::default() }
    }

    fn listener() -> Capture {
        let raw = |on| FilterChainMatch { transport_protocol: "raw_buffer".into(), ..on };
        let http =
            |on| FilterChainMatch { application_protocols: vec!["http/1.1".into()], ..raw(on) };
        let port = Some(UInt32Value { value: 18001 });
        Capture(Listener {
            filter_chains: vec![
                chain("self", FilterChainMatch { destination_port: port, ..Default::default() }),
                chain("net", range("10.96.0.0", 16)),
                chain("tcp", range("10.96.0.1", 32)),
                chain("mixed_tcp", range("10.96.0.2", 32)),
                chain("mixed_raw", raw(range("10.96.0.2", 32))),
                chain("mixed_http", http(range("10.96.0.2", 32))),
                chain("six", range("fd00::1", 128)),
                chain("http", http(FilterChainMatch::default())),
            ],
            default_filter_chain: Some(FilterChain {
                name: "default".into(),
                ..Default::default()
            }),
            ..Default::default()
        })
    }

    #[test]
    fn the_narrower_match_takes_it_and_there_is_no_way_back() {
        let http = Some("http/1.1");
        for (to, port, tls, protocol, expected) in [
            ("127.0.0.1", 18001, false, http, "self"),
            ("10.96.0.1", 80, false, http, "tcp"),
            ("10.96.0.1", 80, true, None, "tcp"),
            ("10.96.0.2", 80, false, http, "mixed_http"),
            ("10.96.0.2", 80, false, None, "mixed_raw"),
            ("10.96.0.2", 80, true, None, "mixed_tcp"),
            // Between the chain of a range and that of a protocol, the address decides.
            ("10.96.9.9", 80, false, http, "net"),
            ("10.97.0.1", 80, false, http, "http"),
            ("10.97.0.1", 80, false, Some("h2c"), "default"),
            ("10.97.0.1", 80, true, None, "default"),
            ("fd00::1", 80, false, http, "six"),
            ("fd00::2", 80, false, None, "default"),
        ] {
            let arrival = Arrival { to: Some(to.parse().unwrap()), port, tls, protocol };
            let capture = listener();
            let found = capture.chain(&arrival).unwrap().map(|chain| chain.name.as_str());
            assert_eq!(found, Some(expected), "{arrival:?}");
        }
        let nobody = Arrival { to: None, port: 80, tls: false, protocol: None };
        assert_eq!(listener().chain(&nobody).unwrap().unwrap().name, "default");
    }

    #[test]
    fn without_a_default_it_is_closed_and_what_is_not_known_is_said() {
        let mut capture = listener();
        capture.0.default_filter_chain = None;
        let arrival = Arrival { to: None, port: 80, tls: true, protocol: None };
        assert_eq!(capture.chain(&arrival).unwrap(), None);
        let by_name =
            FilterChainMatch { server_names: vec!["a.example".into()], ..Default::default() };
        capture.0.filter_chains.push(chain("sni", by_name));
        let error = capture.chain(&arrival).unwrap_err().to_string();
        assert!(error.contains("the filter chain sni"), "{error}");
    }
}
