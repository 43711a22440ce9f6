//! Responses that the client has not answered yet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Batch, Resource};

/// How long a push of a type waits for the answer to the one before. Envoy answers in
/// milliseconds, except that it accepts clusters only when they are warm.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a push of clusters waits where one of the response before is gone again: Envoy accepts
/// that response only when all of its clusters are warm, and this one would not be for 15 s. The
/// next response ends its warming.
const WARMING: Duration = Duration::from_millis(100);

/// How many responses that were never answered are remembered, in case the answer still comes.
const REMEMBERED: usize = 16;

/// A response that was sent.
#[derive(Debug)]
pub(super) struct Flight {
    nonce: u64,
    sent: Instant,
    /// The snapshot that it was sent from, of which alone its refusal says something.
    pub(super) generation: u64,
    pub(super) resources: Batch,
    pub(super) removed: Arc<[Arc<str>]>,
}

/// The responses of one type that wait for their answer.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Vec<Flight>,
    last: u64,
}

impl Flights {
    /// Notes a response that is sent now.
    pub(super) fn launch(
        &mut self,
        nonce: u64,
        now: Instant,
        generation: u64,
        resources: Batch,
        removed: Arc<[Arc<str>]>,
    ) {
        let old = self.open.iter().filter(|f| f.expiry() <= now).count();
        if old > REMEMBERED {
            self.open.remove(0);
        }
        self.last = nonce;
        self.open.push(Flight { nonce, sent: now, generation, resources, removed });
    }

    /// The response that a nonce answers; `None` for one that is not known or was answered.
    pub(super) fn land(&mut self, nonce: u64) -> Option<Flight> {
        let at = self.open.iter().position(|flight| flight.nonce == nonce)?;
        Some(self.open.remove(at))
    }

    /// Forgets the responses before one that was answered. An Envoy that is asked about the state of
    /// the world says nothing while clusters warm, and then answers the last response alone: to wait
    /// for the answers to the others would hold back everything until patience ends.
    pub(super) fn supersede(&mut self, nonce: u64) {
        self.open.retain(|flight| flight.nonce > nonce);
    }

    /// The names in all responses that wait for their answer.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let all = self.open.iter();
        all.flat_map(|flight| {
            flight.resources.iter().map(Resource::name).chain(flight.removed.iter())
        })
    }

    /// The nonce of the last response, 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether every response was answered.
    pub(super) fn answered(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether an answer is still worth waiting for.
    pub(super) fn waiting(&self, now: Instant) -> bool {
        self.open.iter().any(|flight| flight.expiry() > now)
    }

    /// Whether a response waits for long enough that brought any of these.
    pub(super) fn overdue(&self, now: Instant, gone: impl Fn(&str) -> bool) -> bool {
        let late = self.open.iter().filter(|flight| flight.sent + WARMING <= now);
        late.flat_map(|flight| flight.resources.iter()).any(|resource| gone(resource.name()))
    }

    /// The next moment at which a response becomes overdue.
    pub(super) fn overdue_at(&self, now: Instant) -> Option<Instant> {
        self.open.iter().map(|flight| flight.sent + WARMING).filter(|at| *at > now).min()
    }

    /// When the waiting ends without an answer.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(Flight::expiry).max()
    }
}

impl Flight {
    /// The nonce of the response.
    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    fn expiry(&self) -> Instant {
        self.sent + PATIENCE
    }
}
