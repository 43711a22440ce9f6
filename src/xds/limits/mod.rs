//! What peers may take of the server: connections, streams, names, and bytes of requests.
//!
//! A peer is an address. What comes over the Unix socket or from this very machine is counted in the
//! totals alone: there, one address stands for many proxies, and for nobody from outside.

mod body;
mod denial;
mod names;
mod room;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

pub(super) use body::Metered;
pub use denial::{Counts, Denial};
pub(super) use names::Names;
pub(super) use room::{Connection, Room, StreamSeat};

/// The limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one peer at a time.
    pub peer_connections: usize,
    /// Streams of one peer at a time, on all its connections.
    pub peer_streams: usize,
    /// Streams on one connection at a time. More wait for their turn, as HTTP/2 has it.
    pub connection_streams: u32,
    /// The largest request, in bytes: a proxy that reconnects names every version that it has, tens
    /// of thousands of them (statement 26).
    pub request: usize,
    /// The bytes of large requests that are being received at a time. More wait.
    pub requests: usize,
    /// The same of one peer, or of one connection where peers are not told apart.
    pub peer_requests: usize,
    /// Names that one stream may have subscribed to, and that a request may hold.
    pub names: usize,
    /// The same of all streams of one peer.
    pub peer_names: usize,
    /// The longest name, in bytes.
    pub name: usize,
    /// How long a new connection has for its handshake and its first stream, and a stream for its
    /// first request.
    pub first: Duration,
    /// How long a request may take from its first byte to its last.
    pub slow: Duration,
    /// How often a connection is asked by HTTP/2 whether its peer still lives (statement 27).
    pub ping: Duration,
    /// How long the peer has to answer.
    pub pong: Duration,
    /// How long a connection goes on, a tenth more or less; then its streams end, and proxies
    /// connect anew. `None`: for as long as they like.
    pub age: Option<Duration>,
    /// Whether the peers on this machine are counted as one.
    pub loopback: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            peer_connections: 1_024,
            peer_streams: 4_096,
            connection_streams: 1_024,
            request: 64 << 20,
            requests: 256 << 20,
            peer_requests: 64 << 20,
            names: 250_000,
            peer_names: 1_000_000,
            name: 1_024,
            first: Duration::from_secs(10),
            slow: Duration::from_secs(30),
            ping: Duration::from_secs(30),
            pong: Duration::from_secs(10),
            age: Some(Duration::from_hours(1)),
            loopback: false,
        }
    }
}

impl Limits {
    /// By what a peer is told from others; `None` where it is not.
    pub(super) fn key(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        (self.loopback || !address.is_loopback()).then_some(address)
    }
}
