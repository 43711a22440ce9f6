//! What is taken, by whom, and given back on every way out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Denial, Limits};
use crate::xds::stats::Stats;

/// All the room there is.
#[derive(Debug)]
pub(in crate::xds) struct Room {
    pub(in crate::xds) limits: Limits,
    pub(in crate::xds) stats: Arc<Stats>,
    connections: AtomicUsize,
    peers: Mutex<HashMap<IpAddr, Arc<Peer>>>,
    bytes: Arc<Semaphore>,
}

/// What one peer has taken.
#[derive(Debug)]
struct Peer {
    connections: AtomicUsize,
    streams: AtomicUsize,
    names: AtomicUsize,
    bytes: Arc<Semaphore>,
}

/// The bytes of a semaphore's permit.
const UNIT: usize = 1024;

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Room {
    pub(in crate::xds) fn new(limits: Limits, stats: Arc<Stats>) -> Self {
        // The largest request must always find room, if it waits for it.
        let bytes = Arc::new(Semaphore::new(units(limits.requests.max(limits.request)) as usize));
        Self { limits, stats, connections: AtomicUsize::new(0), peers: Mutex::default(), bytes }
    }

    /// A connection from this address; without one, its peer is not told from others.
    pub(in crate::xds) fn connection(
        self: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Result<Arc<Connection>, Denial> {
        let key = address.and_then(|address| self.limits.key(address));
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        // All that changes these numbers up is under this lock.
        if self.connections.load(Relaxed) >= self.limits.connections {
            return Err(Denial::Connections);
        }
        let peer = match key {
            Some(key) => peers.entry(key).or_insert_with(|| self.peer()).clone(),
            None => self.peer(),
        };
        if key.is_some() && peer.connections.load(Relaxed) >= self.limits.peer_connections {
            return Err(Denial::PeerConnections);
        }
        self.connections.fetch_add(1, Relaxed);
        peer.connections.fetch_add(1, Relaxed);
        Ok(Arc::new(Connection {
            room: self.clone(),
            key,
            peer,
            opened: AtomicBool::new(false),
            cut: CancellationToken::new(),
        }))
    }

    fn peer(&self) -> Arc<Peer> {
        let bytes = self.limits.peer_requests.max(self.limits.request);
        Arc::new(Peer {
            connections: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            names: AtomicUsize::new(0),
            bytes: Arc::new(Semaphore::new(units(bytes) as usize)),
        })
    }

    /// How many peers are told apart at the moment.
    #[cfg(test)]
    pub(in crate::xds) fn peers(&self) -> usize {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A connection's part of the room.
#[derive(Debug)]
pub(in crate::xds) struct Connection {
    pub(in crate::xds) room: Arc<Room>,
    key: Option<IpAddr>,
    peer: Arc<Peer>,
    opened: AtomicBool,
    /// Ends the connection at once.
    pub(in crate::xds) cut: CancellationToken,
}

impl Connection {
    /// A stream on it.
    pub(in crate::xds) fn stream(self: &Arc<Self>) -> Result<StreamSeat, Denial> {
        self.opened.store(true, Relaxed);
        let seat = StreamSeat { connection: self.clone(), names: 0 };
        let before = self.peer.streams.fetch_add(1, Relaxed);
        if self.key.is_some() && before >= self.room.limits.peer_streams {
            return Err(Denial::PeerStreams);
        }
        Ok(seat)
    }

    /// Whether there ever was a stream on it.
    pub(in crate::xds) fn opened(&self) -> bool {
        self.opened.load(Relaxed)
    }

    /// Waits for the room that a large request takes.
    pub(super) async fn request(self: Arc<Self>, bytes: usize) -> Option<Taken> {
        let (units, limits) = (units(bytes), &self.room.limits);
        // The peer's own part first: who waits for that must not keep others waiting.
        let of_peer = self.peer.bytes.clone().acquire_many_owned(units).await.ok()?;
        let of_all = self.room.bytes.clone().acquire_many_owned(units).await.ok()?;
        // Told in good order by who reads it; one whose stream does not move on is cut.
        let (late, cut) = (limits.slow + limits.slow / 4, self.cut.clone());
        let watch = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            cut.cancel();
        });
        Some(Taken { _permits: [of_peer, of_all], _watch: AbortOnDropHandle::new(watch) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut peers = self.room.peers.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.connections.fetch_sub(1, Relaxed);
        let last = self.peer.connections.fetch_sub(1, Relaxed) == 1;
        if let Some(key) = self.key.filter(|_| last) {
            peers.remove(&key);
        }
    }
}

/// Bytes that are taken until it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    _permits: [OwnedSemaphorePermit; 2],
    _watch: AbortOnDropHandle<()>,
}

/// A stream's part of the room.
#[derive(Debug)]
pub(in crate::xds) struct StreamSeat {
    connection: Arc<Connection>,
    names: usize,
}

impl StreamSeat {
    /// The stream has subscribed to so many names now.
    pub(in crate::xds) fn names(&mut self, names: usize) -> Result<(), Denial> {
        let (limits, of_peer) = (&self.connection.room.limits, &self.connection.peer.names);
        let before = std::mem::replace(&mut self.names, names);
        let more = names.saturating_sub(before);
        let sum = of_peer.fetch_add(more, Relaxed) + more;
        of_peer.fetch_sub(before.saturating_sub(names), Relaxed);
        if names > limits.names {
            return Err(Denial::Names);
        }
        if more > 0 && sum > limits.peer_names {
            return Err(Denial::PeerNames);
        }
        Ok(())
    }

    /// What a request may hold.
    pub(in crate::xds) fn limits(&self) -> &Limits {
        &self.connection.room.limits
    }

    /// Counts a refusal, and says it.
    pub(in crate::xds) fn refuse(&self, reason: Denial) -> tonic::Status {
        self.connection.room.stats.refused.add(reason);
        reason.status(&self.connection.room.limits)
    }
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        self.connection.peer.names.fetch_sub(self.names, Relaxed);
        self.connection.peer.streams.fetch_sub(1, Relaxed);
    }
}
