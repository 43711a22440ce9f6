//! Why a peer is refused something, in words and in numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tonic::Status;

use super::Limits;

/// Why a connection, a stream or a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// Too many connections in all.
    Connections,
    /// Too many of this peer.
    PeerConnections,
    /// Too many streams of this peer.
    PeerStreams,
    /// A connection without a stream, or a stream without a request.
    First,
    /// A request that does not come to its end.
    Slow,
    /// A request that is too large.
    Size,
    /// Too many names.
    Names,
    /// Too many names of this peer.
    PeerNames,
    /// A name that is too long.
    Name,
    /// The handshake of TLS failed: no certificate, or one that is not believed.
    Handshake,
    /// It speaks plain text where TLS is spoken.
    PlainText,
    /// It is another one than it says.
    Identity,
}

impl Denial {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Connections,
        Self::PeerConnections,
        Self::PeerStreams,
        Self::First,
        Self::Slow,
        Self::Size,
        Self::Names,
        Self::PeerNames,
        Self::Name,
        Self::Handshake,
        Self::PlainText,
        Self::Identity,
    ];

    /// In a word, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::PeerConnections => "peer_connections",
            Self::PeerStreams => "peer_streams",
            Self::First => "first_request",
            Self::Slow => "slow_request",
            Self::Size => "request_size",
            Self::Names => "names",
            Self::PeerNames => "peer_names",
            Self::Name => "name_length",
            Self::Handshake => "tls_handshake",
            Self::PlainText => "plain_text",
            Self::Identity => "identity",
        }
    }

    /// What the peer is told.
    pub(crate) fn words(self, limits: &Limits) -> String {
        match self {
            Self::Connections => format!(
                "the server has {} connections, as many as it takes (--xds-max-connections)",
                limits.connections
            ),
            Self::PeerConnections => format!(
                "this address has {} connections, as many as one may have \
                 (--xds-max-peer-connections)",
                limits.peer_connections
            ),
            Self::PeerStreams => format!(
                "this address has {} streams, as many as one may have (--xds-max-peer-streams)",
                limits.peer_streams
            ),
            Self::First => format!(
                "no request came within {:?}: send one as soon as the stream is open",
                limits.first
            ),
            Self::Slow => format!("a request did not come to its end within {:?}", limits.slow),
            Self::Size => format!("a request has more than the {} bytes it may", limits.request),
            Self::Names => format!(
                "more than {} names: open several streams, or ask with a wildcard",
                limits.names
            ),
            Self::PeerNames => {
                format!("the streams of this address name more than {}", limits.peer_names)
            }
            Self::Name => {
                format!("a name in a request has more than the {} bytes it may", limits.name)
            }
            Self::PlainText => "this address speaks TLS: connect with a client certificate \
                                (aether bootstrap --help says how)"
                .to_owned(),
            // The TLS library and who vouches have words of their own.
            Self::Handshake => "the TLS handshake failed".to_owned(),
            Self::Identity => "the peer is not who it says".to_owned(),
        }
    }

    /// As the status of a stream.
    pub(crate) fn status(self, limits: &Limits) -> Status {
        let words = self.words(limits);
        match self {
            Self::First | Self::Slow => Status::deadline_exceeded(words),
            Self::Handshake | Self::PlainText => Status::unauthenticated(words),
            Self::Identity => Status::permission_denied(words),
            _ => Status::resource_exhausted(words),
        }
    }
}

/// How often each happened.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; Denial::ALL.len()]);

impl Counts {
    pub(crate) fn add(&self, reason: Denial) {
        if let Some((_, count)) = Denial::ALL.iter().zip(&self.0).find(|(r, _)| **r == reason) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// How often this happened.
    pub fn get(&self, reason: Denial) -> u64 {
        let count = Denial::ALL.iter().zip(&self.0).find(|(r, _)| **r == reason);
        count.map_or(0, |(_, count)| count.load(Relaxed))
    }
}
