//! Values of options that have a form of their own, refused before anything starts.

mod span;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::model::is_dns_label;
pub use span::{Span, duration};

/// Where the process listens for proxies on a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// Nowhere.
    Off,
    /// At this path, or it does not start.
    At(PathBuf),
}

/// The longest path of a Unix socket, in bytes: `sun_path` holds 108 with the zero at its end.
const LONGEST_SOCKET: usize = 107;

impl FromStr for Socket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" | "none" => Ok(Self::Off),
            long if long.len() > LONGEST_SOCKET => Err(format!(
                "the path has {} bytes, and a Unix socket's at most {LONGEST_SOCKET}: take a shorter one",
                long.len()
            )),
            path => Ok(Self::At(path.into())),
        }
    }
}

/// Where the process listens for proxies on TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub Option<SocketAddr>);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if matches!(text, "" | "none") {
            return Ok(Self(None));
        }
        text.parse().map(|address| Self(Some(address))).map_err(|_| {
            "not an IP address and a port: write 127.0.0.1:18000, [::1]:18000, or none".to_owned()
        })
    }
}

/// What an option that is on or off may be set to, in its environment variable. Any case will do.
///
/// # Errors
/// For any other word, with those that count.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err("write true, yes, on or 1; or false, no, off or 0".to_owned()),
    }
}

/// Ports, sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports(pub BTreeSet<u16>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |word: &str| match word.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(format!("{word:?} is no port: write numbers of 1 to 65535, as in 22,3306")),
        };
        words(text).map(port).collect::<Result<_, _>>().map(Self)
    }
}

/// Resolvers by address, in order; the port is 53 where none is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolvers(pub Vec<SocketAddr>);

impl FromStr for Resolvers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let resolver = |word: &str| {
            let bare = || word.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
            word.parse::<SocketAddr>().or_else(|_| bare()).ok().filter(|a| a.port() > 0).ok_or_else(|| {
                format!("{word:?} is no address of a resolver: write 10.96.0.10, 10.96.0.10:53 or [fd00::a]:53")
            })
        };
        words(text).map(resolver).collect::<Result<_, _>>().map(Self)
    }
}

/// Namespaces, in lower case, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespaces(pub BTreeSet<String>);

impl FromStr for Namespaces {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        words(text).map(namespace).collect::<Result<_, _>>().map(Self)
    }
}

/// One namespace, in lower case.
///
/// # Errors
/// What to write instead.
pub fn namespace(word: &str) -> Result<String, String> {
    let name = word.to_ascii_lowercase();
    let error = || {
        format!("{word:?} is no name of a namespace: write a-z, 0-9 and '-', as in spire-system")
    };
    is_dns_label(&name).then_some(name).ok_or_else(error)
}

/// The words between commas. An empty text has none; an empty word is a mistake, and is kept so
/// that it is refused.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let whole = text.trim();
    let words = (!whole.is_empty()).then(|| whole.split(',').map(str::trim));
    words.into_iter().flatten()
}

/// Where the xDS server is, for a bootstrap: a host name or IP address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether this is every address of a machine, where one can listen but not connect.
    pub fn unspecified(&self) -> bool {
        matches!(self.host, Host::Ip(ip) if ip.is_unspecified())
    }
}

/// Where the xDS server is reached by TCP, if it is at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// `none`, or nothing: by no address.
    Off,
    /// By this one.
    At(HostPort),
}

impl FromStr for Reach {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "none" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

/// A host by address or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// By address.
    Ip(IpAddr),
    /// By name, which Envoy resolves.
    Name(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            "not a host and a port: write aether.aether-system.svc:18000, 127.0.0.1:18000 or [::1]:18000"
                .to_owned()
        };
        if let Ok(address) = text.parse::<SocketAddr>() {
            let (host, port) = (Host::Ip(address.ip()), address.port());
            return if port > 0 { Ok(Self { host, port }) } else { Err(form()) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(form)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(form)?;
        let lower = host.to_ascii_lowercase();
        let name = lower.strip_suffix('.').unwrap_or(&lower);
        // Digits and dots alone would be a broken IPv4 address, and not a name.
        let numeric = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if numeric || name.len() > 253 || !name.split('.').all(is_dns_label) {
            return Err(form());
        }
        Ok(Self { host: Host::Name(lower), port })
    }
}

#[cfg(test)]
mod tests;
