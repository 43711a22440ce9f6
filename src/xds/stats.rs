//! Counters of what the streams do, for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::Kind;

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

/// Why a response was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is the first of its type on its stream.
    First,
    /// What is served changed.
    Change,
    /// The client asked, by a subscription or by an answer that it was waited for.
    Asked,
    /// It was held back, by the order of things or in want of an answer, and its time came.
    Held,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::First, Self::Change, Self::Asked, Self::Held];

    /// The word for a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Change => "change",
            Self::Asked => "asked",
            Self::Held => "held",
        }
    }
}

/// Responses by type and reason.
#[derive(Debug, Default)]
pub struct Pushes([PerKind; Reason::ALL.len()]);

impl Pushes {
    pub(super) fn add(&self, kind: Kind, reason: Reason) {
        if let Some((_, counts)) = Reason::ALL.iter().zip(&self.0).find(|(r, _)| **r == reason) {
            counts.add(kind, 1);
        }
    }

    /// The count of one type for each reason.
    pub fn by_reason(&self, kind: Kind) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().zip(&self.0).map(move |(reason, counts)| (reason, counts.get(kind)))
    }

    /// The count of one type.
    pub fn get(&self, kind: Kind) -> u64 {
        self.by_reason(kind).map(|(_, count)| count).sum()
    }
}

/// How long something took, by type.
#[derive(Debug)]
pub struct Latency([Histogram; Kind::ALL.len()]);

impl Default for Latency {
    fn default() -> Self {
        // From half a millisecond to 16 s.
        Self(std::array::from_fn(|_| Histogram::new(exponential_buckets(0.0005, 2.0, 16))))
    }
}

impl Latency {
    pub(super) fn observe(&self, kind: Kind, took: Duration) {
        if let Some((_, histogram)) = Kind::ALL.iter().zip(&self.0).find(|(k, _)| **k == kind) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// The histogram of each type.
    pub(super) fn histograms(&self) -> impl Iterator<Item = (Kind, &Histogram)> {
        Kind::ALL.into_iter().zip(&self.0)
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
    /// Responses by type and reason.
    pub responses: Pushes,
    /// Bytes of responses by type.
    pub bytes: PerKind,
    /// Responses that a client refused, by type.
    pub nacks: PerKind,
    /// From a change to the response that told a stream of it.
    pub to_push: Latency,
    /// From a change to the answer that accepted that response.
    pub to_ack: Latency,
    /// Requests for a type that is not served.
    pub unknown_types: AtomicU64,
    /// Streams that were refused for their node id.
    pub refused_nodes: AtomicU64,
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
