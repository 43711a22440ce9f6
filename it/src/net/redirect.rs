//! The redirection rules of a pod, as the contract's "What is redirected" has them.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use anyhow::Result;

use super::Netns;
use super::netns::feed;
use crate::places::SIDECAR_USER;

/// Where captured connections go: the capture listener's port.
pub const CAPTURE_PORT: u16 = 18001;
/// Where the queries of a pod with a dns_filter go.
pub const DNS_PORT: u16 = 18053;
/// The one port that scoped mode redirects.
pub const MESH_PORT: u16 = 18081;

/// What of a pod's TCP is redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Connections to port 18081.
    Scoped,
    /// All connections that are not excluded.
    All,
}

/// How the proxy's own traffic escapes its redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// By the sidecar's user.
    Owner,
    /// By the mark on a node proxy's sockets.
    Mark,
}

/// The rules of one pod, both address families.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// What of its TCP is redirected.
    pub mode: Mode,
    /// Whose traffic is not.
    pub escape: Escape,
    /// The pod's own nameservers, whose UDP queries go to its dns_filter. None: no query is redirected.
    pub nameservers: Vec<IpAddr>,
    /// Destination ports that are left alone.
    pub exclude_ports: Vec<RangeInclusive<u16>>,
    /// Destination ranges (address/width, either family) that are left alone.
    pub exclude_ranges: Vec<(IpAddr, u8)>,
}

impl Redirect {
    /// The rules of a sidecar's pod in this mode, nothing excluded.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            escape: Escape::Owner,
            nameservers: Vec::new(),
            exclude_ports: Vec::new(),
            exclude_ranges: Vec::new(),
        }
    }

    /// With the queries to this nameserver redirected.
    pub fn nameserver(mut self, address: IpAddr) -> Self {
        self.nameservers.push(address);
        self
    }

    /// With these destination ports left alone.
    pub fn exclude_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.exclude_ports.push(ports);
        self
    }

    /// With this destination range left alone.
    pub fn exclude_range(mut self, address: IpAddr, width: u8) -> Self {
        self.exclude_ranges.push((address, width));
        self
    }

    /// Puts them in place of the rules of both tables in this namespace. Each family's change is one transaction.
    pub(super) fn apply(&self, netns: &Netns) -> Result<()> {
        // What answers a connection that is not tracked must not begin an entry: the next connection of an application
        // from the same port to the same server would be taken for the other direction of it, and not be redirected.
        netns.sysctl(&["net.netfilter.nf_conntrack_tcp_loose=0"])?;
        feed(&mut netns.command("iptables-restore"), &self.rules(false))?;
        feed(&mut netns.command("ip6tables-restore"), &self.rules(true))
    }

    /// The input of iptables-restore, or of ip6tables-restore.
    pub fn rules(&self, v6: bool) -> String {
        let escape = match self.escape {
            Escape::Owner => format!("-m owner --uid-owner {SIDECAR_USER}"),
            Escape::Mark => "-m mark --mark 0xae7e".to_owned(),
        };
        let mut rules = String::new();
        // What leaves by loopback is tracked: Envoy's answers to redirected connections go there, and must be.
        let _ = writeln!(rules, "*raw\n-A OUTPUT ! -o lo {escape} -j CT --notrack\nCOMMIT");
        let _ = writeln!(rules, "*nat\n-A OUTPUT {escape} -j RETURN");
        // Before loopback and link-local, since a nameserver may be either (a node's cache).
        for server in self.nameservers.iter().filter(|server| server.is_ipv6() == v6) {
            let _ = writeln!(
                rules,
                "-A OUTPUT -d {server} -p udp --dport 53 -j REDIRECT --to-ports {DNS_PORT}"
            );
        }
        for ports in &self.exclude_ports {
            let (first, last) = (ports.start(), ports.end());
            let _ = writeln!(rules, "-A OUTPUT -p tcp --dport {first}:{last} -j RETURN");
        }
        for (range, width) in self.exclude_ranges.iter().filter(|(range, _)| range.is_ipv6() == v6)
        {
            let _ = writeln!(rules, "-A OUTPUT -d {range}/{width} -j RETURN");
        }
        let left_alone: &[&str] = if v6 {
            &["::1/128", "fe80::/10", "ff00::/8"]
        } else {
            &["127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4"]
        };
        for range in left_alone {
            let _ = writeln!(rules, "-A OUTPUT -d {range} -j RETURN");
        }
        let _ = writeln!(rules, "-A OUTPUT -p tcp --dport {CAPTURE_PORT} -j RETURN");
        let which = match self.mode {
            Mode::Scoped => format!("--dport {MESH_PORT} "),
            Mode::All => String::new(),
        };
        let _ = writeln!(
            rules,
            "-A OUTPUT -p tcp {which}-j REDIRECT --to-ports {CAPTURE_PORT}\nCOMMIT"
        );
        rules
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::{Escape, Mode, Redirect};

    /// Where the first rule that holds all of these words stands, counted in lines.
    fn line(rules: &str, words: &[&str]) -> Option<usize> {
        rules.lines().position(|rule| words.iter().all(|word| rule.contains(word)))
    }

    #[test]
    fn the_order_is_the_contracts() {
        let redirect = Redirect::new(Mode::All)
            .nameserver("10.96.0.10".parse().unwrap())
            .nameserver("fd00::a".parse().unwrap())
            .exclude_ports(3306..=3307)
            .exclude_range("192.0.2.0".parse().unwrap(), 24);
        let rules = redirect.rules(false);
        let order = [
            line(&rules, &["! -o lo", "--uid-owner 1337", "--notrack"]),
            line(&rules, &["--uid-owner 1337", "RETURN"]),
            line(&rules, &["-d 10.96.0.10 ", "udp --dport 53", "18053"]),
            line(&rules, &["--dport 3306:3307", "RETURN"]),
            line(&rules, &["-d 192.0.2.0/24", "RETURN"]),
            line(&rules, &["-d 127.0.0.0/8", "RETURN"]),
            line(&rules, &["-d 169.254.0.0/16", "RETURN"]),
            line(&rules, &["-d 224.0.0.0/4", "RETURN"]),
            line(&rules, &["--dport 18001", "RETURN"]),
            line(&rules, &["-p tcp -j REDIRECT --to-ports 18001"]),
        ];
        assert!(order.iter().all(Option::is_some), "{rules}");
        assert!(order.is_sorted(), "{rules}");
        assert!(!rules.contains("fd00::a"), "each family has its own: {rules}");
    }

    #[test]
    fn each_family_has_its_own_addresses() {
        let redirect = Redirect::new(Mode::All)
            .nameserver("10.96.0.10".parse().unwrap())
            .nameserver("fd00::a".parse().unwrap())
            .exclude_range("2001:db8::".parse().unwrap(), 32);
        let rules = redirect.rules(true);
        assert!(rules.contains("-d fd00::a -p udp"), "{rules}");
        assert!(rules.contains("-d 2001:db8::/32 -j RETURN"), "{rules}");
        for range in ["::1/128", "fe80::/10", "ff00::/8"] {
            assert!(rules.contains(range), "{rules}");
        }
        assert!(!rules.contains("10.96") && !rules.contains("127.0.0.0"), "{rules}");
    }

    #[test]
    fn scoped_mode_redirects_one_port_alone() {
        let rules = Redirect::new(Mode::Scoped).rules(false);
        assert_eq!(rules.matches("REDIRECT").count(), 1, "{rules}");
        assert!(rules.contains("-p tcp --dport 18081 -j REDIRECT --to-ports 18001"), "{rules}");
    }

    #[test]
    fn a_node_proxy_escapes_by_its_mark() {
        let redirect = Redirect { escape: Escape::Mark, ..Redirect::new(Mode::All) };
        let rules = redirect.rules(false);
        assert!(!rules.contains("owner"), "{rules}");
        assert_eq!(rules.matches("--mark 0xae7e").count(), 2, "{rules}");
    }
}
