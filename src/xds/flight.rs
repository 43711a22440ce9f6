//! Responses that the client has not answered yet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Resource;

/// How long a push of a type waits for the answer to the one before. Envoy answers in
/// milliseconds, except that it accepts clusters only when they are warm.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How many responses that were never answered are remembered, in case the answer still comes.
const REMEMBERED: usize = 16;

/// A response that was sent.
#[derive(Debug)]
pub(super) struct Flight {
    nonce: u64,
    sent: Instant,
    pub(super) resources: Arc<[Resource]>,
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
        resources: Arc<[Resource]>,
        removed: Arc<[Arc<str>]>,
    ) {
        let old = self.open.iter().filter(|f| f.expiry() <= now).count();
        if old > REMEMBERED {
            self.open.remove(0);
        }
        self.last = nonce;
        self.open.push(Flight { nonce, sent: now, resources, removed });
    }

    /// The response that a nonce answers; `None` for one that is not known or was answered.
    pub(super) fn land(&mut self, nonce: u64) -> Option<Flight> {
        let at = self.open.iter().position(|flight| flight.nonce == nonce)?;
        Some(self.open.remove(at))
    }

    /// The nonce of the last response, 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether an answer is still worth waiting for.
    pub(super) fn waiting(&self, now: Instant) -> bool {
        self.open.iter().any(|flight| flight.expiry() > now)
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
