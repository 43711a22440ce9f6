//! Canaries: a new snapshot goes to a few streams first, and to the others when those accepted it.
//!
//! [`Trials`] decides, and neither waits nor reads a clock; the [`Store`](super::Store) asks it and
//! wakes the streams. A [`Seat`] is a stream's place among those that may be chosen.

mod seat;
#[cfg(test)]
mod tests;
mod trials;

use std::sync::Arc;
use std::time::Duration;

pub(super) use seat::Seat;
pub(super) use trials::{Said, Trials};

use super::{Refusal, Snapshot};

/// How snapshots are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanarySettings {
    /// How many streams are asked first; 0: a snapshot goes to all at once.
    pub streams: usize,
    /// How long they have. An Envoy accepts clusters only when they are warm, and one that hangs
    /// must not hold up the mesh.
    pub wait: Duration,
}

/// What became of a snapshot, for its writer.
#[derive(Debug, Clone)]
pub enum Fate {
    /// It is served to all.
    Released(Arc<Snapshot>, Grounds),
    /// A canary refused it, so that it went no further.
    Refused {
        /// The snapshot.
        snapshot: Arc<Snapshot>,
        /// The node id of the canary.
        node: Arc<str>,
        /// What it said.
        refusal: Refusal,
    },
}

/// On what grounds a snapshot is served to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grounds {
    /// Nobody was there to be asked first.
    Unasked,
    /// All canaries accepted it.
    Accepted,
    /// The time passed without a refusal.
    TimePassed,
}
