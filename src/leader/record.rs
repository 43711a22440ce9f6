//! What the election reads and writes: records of the Lease, requests and answers.

use std::sync::Arc;
use std::time::Duration;

use super::Boot;

/// The Lease as it was seen at some time. `T` is the object itself, which the election hands back
/// when it is to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<T> {
    /// Its resourceVersion.
    pub version: Arc<str>,
    /// Who holds it; `None` where it was handed over.
    pub holder: Option<Arc<str>>,
    /// For how long without a renewal, as the holder wrote it.
    pub duration: Option<Duration>,
    /// The object.
    pub body: T,
}

impl<T> Record<T> {
    /// Whether this is known to be older than `other`, as a watch that lags behind shows it.
    /// Versions count up; what is no number is not judged.
    pub(super) fn older_than(&self, other: &Self) -> bool {
        older(&self.version, &other.version)
    }
}

/// Whether a version comes before another, where both are numbers.
pub(super) fn older(version: &str, other: &str) -> bool {
    match (version.parse::<u64>(), other.parse::<u64>()) {
        (Ok(version), Ok(other)) => version < other,
        _ => false,
    }
}

/// A request to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<T> {
    /// Read the Lease, and not from a cache.
    Read,
    /// Create it, held by this process.
    Create,
    /// Replace this record, and no other, by one that this process holds.
    Hold(Record<T>),
    /// Replace this record, and no other, by one that nobody holds.
    Release(Record<T>),
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// What was read; `None`: there is no Lease.
    Read(Option<Record<T>>),
    /// What was written is stored, and this is its form.
    Stored(Record<T>),
    /// Another write was faster, or the Lease is gone: nothing was stored.
    Refused,
    /// Anything else, such as no answer at all: it may or may not have been stored.
    Failed,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Send this, and come back with the answer, or with [`Answer::Failed`] after the limit.
    Send(Request<T>, Duration),
    /// Nothing before an answer, an observation, or this time.
    Wait(Option<Boot>),
    /// The election is over for this process.
    Done,
}
