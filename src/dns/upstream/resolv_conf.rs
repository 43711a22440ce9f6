//! The nameservers of a `resolv.conf`, for when no upstream is configured.

use std::net::{IpAddr, SocketAddr};

/// Where it is.
pub const PATH: &str = "/etc/resolv.conf";

/// The port of a nameserver, which the file cannot give.
const PORT: u16 = 53;

/// The nameservers of such a text, in order, each once. What is no address is passed over, as the
/// C library does; so are IPv6 addresses with a zone, which a node's resolver has no use for.
pub fn nameservers(text: &str) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let address = match (words.next(), words.next()) {
            (Some("nameserver"), Some(word)) => word.parse::<IpAddr>(),
            _ => continue,
        };
        if let Ok(address) = address.map(|ip| SocketAddr::new(ip, PORT))
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn nameservers_are_read_in_order() {
        let text = "# nameserver 1.1.1.1\n\
                    search shop.svc.cluster.local svc.cluster.local\n\
                    nameserver 10.96.0.10\n  nameserver\tfd00::a   # why\n\
                    nameserver 10.96.0.10\nnameserver nonsense\nnameserver fe80::1%eth0\nnameserver\n\
                    options ndots:5\n;nameserver 9.9.9.9\nnameservers 8.8.8.8\n";
        let expected: Vec<SocketAddr> =
            vec!["10.96.0.10:53".parse().unwrap(), "[fd00::a]:53".parse().unwrap()];
        assert_eq!(nameservers(text), expected);
        assert_eq!(nameservers(""), []);
    }
}
