//! The question: who asks for what.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::model::{PodKey, quoted};

/// The port of a destination that names none: that of `http://`.
pub const ASSUMED_PORT: u16 = 80;

/// What a connection's first bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Speaks {
    /// HTTP/1 or HTTP/2 in clear.
    Http,
    /// TLS, whatever is inside.
    Tls,
    /// Anything else, and a client that waits for the server to speak first.
    Tcp,
}

impl Speaks {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 3] = [Self::Http, Self::Tls, Self::Tcp];

    /// As it stands in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Tls => "TLS",
            Self::Tcp => "other TCP",
        }
    }

    /// As it is written in an option and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }
}

impl FromStr for Speaks {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.word() == word);
        known.ok_or_else(|| format!("{} is none of http, tls and tcp", quoted(word)))
    }
}

/// Whom a connection is for, as its client would write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// By name, in lower case, with the dot at its end where there was one.
    Name(String),
    /// By address.
    Ip(IpAddr),
}

/// Why a destination cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// It has no host.
    #[error(
        "the destination {} names no host: write web.shop, web.shop:8080, 10.96.0.7:80 or [fd00::7]:80",
        quoted(.0)
    )]
    NoHost(String),
    /// Its port is none.
    #[error("{} in the destination {} is no port: write a number from 1 to 65535", quoted(.1), quoted(.0))]
    Port(String, String),
    /// An IPv6 address without brackets, where the port cannot be told from the address.
    #[error("the IPv6 address in the destination {} stands without brackets: write [{ip}]:{port}", quoted(.text), port = ASSUMED_PORT)]
    Brackets {
        /// The destination.
        text: String,
        /// The address.
        ip: IpAddr,
    },
    /// The host is no name in DNS.
    #[error(
        "{} in the destination {} is neither an address nor a name: use letters, digits, '-', '_' and '.', 253 characters at most and 63 between dots",
        quoted(.1),
        quoted(.0)
    )]
    Name(String, String),
}

/// `host[:port]` or `ip[:port]`, with or without `http://` or `https://` before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Whether the port was said, or follows from the scheme.
    pub port_said: bool,
    /// What a scheme says of the bytes.
    pub speaks: Option<Speaks>,
}

impl Destination {
    /// The authority of a request to it: the port is left out where it is that of `http://`.
    pub fn authority(&self) -> String {
        if self.port == ASSUMED_PORT { self.bare() } else { self.to_string() }
    }

    /// The host alone, IPv6 in brackets.
    fn bare(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::Ip(IpAddr::V4(ip)) => ip.to_string(),
            Host::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let (rest, implied, speaks) = match text.split_once("://") {
            Some(("http", rest)) => (rest, Some(80), Some(Speaks::Http)),
            Some(("https", rest)) => (rest, Some(443), Some(Speaks::Tls)),
            _ => (text, None, None),
        };
        let authority = match (implied, rest.split_once(['/', '?', '#'])) {
            (Some(_), Some((authority, _))) => authority,
            _ => rest,
        };
        if let Ok(ip @ IpAddr::V6(_)) = authority.parse() {
            return Err(DestinationError::Brackets { text: text.to_owned(), ip });
        }
        let in_brackets = authority.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match in_brackets {
            Some((host, "")) => (host, None),
            Some((host, rest)) => match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return Err(DestinationError::Port(text.to_owned(), rest.to_owned())),
            },
            None => match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let said = match port {
            None => None,
            Some(port) => match number(port) {
                Some(number) => Some(number),
                None => return Err(DestinationError::Port(text.to_owned(), port.to_owned())),
            },
        };
        let said = said.or(implied);
        let host = host_of(host, in_brackets.is_some(), text)?;
        let (port, port_said) = (said.unwrap_or(ASSUMED_PORT), said.is_some());
        Ok(Self { host, port, port_said, speaks })
    }
}

/// A port in decimal digits alone.
fn number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
}

fn host_of(host: &str, in_brackets: bool, text: &str) -> Result<Host, DestinationError> {
    let wrong = || DestinationError::Name(text.to_owned(), host.to_owned());
    match host.parse::<IpAddr>() {
        Ok(ip) if ip.is_ipv6() == in_brackets => return Ok(Host::Ip(ip)),
        _ if in_brackets => return Err(wrong()),
        _ => {}
    }
    let plain = host.strip_suffix('.').unwrap_or(host);
    if plain.is_empty() {
        return Err(DestinationError::NoHost(text.to_owned()));
    }
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(inner)
    };
    // What ends in a number is an address to whoever reads it, and this is none.
    let last = plain.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit());
    if plain.len() > 253 || numeric || !plain.split('.').all(label) {
        return Err(wrong());
    }
    Ok(Host::Name(host.to_ascii_lowercase()))
}

/// Who asks for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The pod whose connection it is.
    pub pod: PodKey,
    /// Where it goes.
    pub destination: Destination,
    /// What its first bytes are; `None`: each is told.
    pub speaks: Option<Speaks>,
}

impl Question {
    /// What is told.
    pub fn all(&self) -> Vec<Speaks> {
        let one = self.speaks.or(self.destination.speaks);
        one.map_or_else(|| Speaks::ALL.to_vec(), |one| vec![one])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn destinations_are_read_as_clients_write_them() {
        for (text, whole, authority, said) in [
            ("web", "web:80", "web", false),
            ("Web.Shop", "web.shop:80", "web.shop", false),
            ("web.shop.:8080", "web.shop.:8080", "web.shop.:8080", true),
            ("web.shop:80", "web.shop:80", "web.shop", true),
            ("10.96.0.7", "10.96.0.7:80", "10.96.0.7", false),
            ("10.96.0.7:3306", "10.96.0.7:3306", "10.96.0.7:3306", true),
            ("[fd00::7]", "[fd00::7]:80", "[fd00::7]", false),
            ("[FD00::7]:81", "[fd00::7]:81", "[fd00::7]:81", true),
            ("http://web.shop/a?b", "web.shop:80", "web.shop", true),
            ("http://web.shop:81", "web.shop:81", "web.shop:81", true),
            ("https://[fd00::7]/", "[fd00::7]:443", "[fd00::7]:443", true),
        ] {
            let read: Destination = text.parse().unwrap();
            let got = (read.to_string(), read.authority(), read.port_said);
            assert_eq!(got, (whole.to_owned(), authority.to_owned(), said), "{text}");
        }
        let tls: Destination = "https://web".parse().unwrap();
        assert_eq!((tls.speaks, tls.port), (Some(Speaks::Tls), 443));
    }

    #[test]
    fn what_is_no_destination_is_told_why() {
        let long = "a".repeat(64);
        for (text, words) in [
            ("", "names no host"),
            (".", "names no host"),
            (":80", "names no host"),
            ("web:", "\"\" in the destination \"web:\" is no port"),
            ("web:0", "\"0\""),
            ("web:65536", "from 1 to 65535"),
            ("web:+80", "no port"),
            ("web:http", "\"http\""),
            ("fd00::7", "write [fd00::7]:80"),
            ("[fd00::7", "neither an address nor a name"),
            ("[fd00::7]80", "no port"),
            ("[web]:80", "neither"),
            ("we b", "neither"),
            ("web..shop", "neither"),
            ("10.96.0.256", "neither"),
            ("web/shop", "neither"),
            (long.as_str(), "63 between dots"),
        ] {
            let error = text.parse::<Destination>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
