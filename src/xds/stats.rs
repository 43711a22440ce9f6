//! Counters of what the streams do, for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Kind;
use super::limits::Counts;

/// Counters by type, in the order of [`Kind::ALL`].
#[derive(Debug, Default)]
pub struct PerKind([AtomicU64; Kind::ALL.len()]);

impl PerKind {
    pub(super) fn add(&self, kind: Kind, count: u64) {
        if let Some(counter) = Kind::ALL.iter().zip(&self.0).find(|(k, _)| **k == kind) {
            counter.1.fetch_add(count, Relaxed);
        }
    }

    /// The count of one type.
    pub fn get(&self, kind: Kind) -> u64 {
        let counter = Kind::ALL.iter().zip(&self.0).find(|(k, _)| **k == kind);
        counter.map_or(0, |(_, counter)| counter.load(Relaxed))
    }
}

/// What the server counts. All of it rises, but for the gauges `streams` and `connections`.
#[derive(Debug, Default)]
pub struct Stats {
    /// Streams that are open.
    pub streams: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Streams that were ever opened.
    pub opened: AtomicU64,
    /// Requests that were read.
    pub requests: AtomicU64,
    /// Responses by type.
    pub responses: PerKind,
    /// Bytes of responses by type.
    pub bytes: PerKind,
    /// Responses that a client refused, by type.
    pub nacks: PerKind,
    /// Requests for a type that is not served.
    pub unknown_types: AtomicU64,
    /// Streams that were refused for their node id.
    pub refused_nodes: AtomicU64,
    /// What was refused for another reason: connections, streams and requests.
    pub refused: Counts,
    /// Connections that were ended for their age.
    pub aged: AtomicU64,
}

/// Counts something as open until it is dropped, on every way out.
#[derive(Debug)]
pub(super) struct Open {
    stats: Arc<Stats>,
    gauge: fn(&Stats) -> &AtomicU64,
}

impl Open {
    pub(super) fn stream(stats: &Arc<Stats>) -> Self {
        stats.opened.fetch_add(1, Relaxed);
        Self::new(stats, |stats| &stats.streams)
    }

    pub(super) fn connection(stats: &Arc<Stats>) -> Self {
        Self::new(stats, |stats| &stats.connections)
    }

    fn new(stats: &Arc<Stats>, gauge: fn(&Stats) -> &AtomicU64) -> Self {
        gauge(stats).fetch_add(1, Relaxed);
        Self { stats: stats.clone(), gauge }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.gauge)(&self.stats).fetch_sub(1, Relaxed);
    }
}
