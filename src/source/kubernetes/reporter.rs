//! Says how it goes with the API server: to the log, to whoever asks for health, and to metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tracing::{info, warn};

use super::kinds::KINDS;
use super::ledger::{Ledger, Line};
use super::metrics::Metrics;
use super::trouble::Trouble;
use crate::health::Part;
use crate::index::ObjectKind;

/// Takes what happens to requests. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Reporter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledger: Mutex<Ledger>,
    health: Part,
    metrics: Metrics,
    /// That something may be due at another time than was told last.
    changed: Notify,
}

impl Reporter {
    /// A reporter to whom nothing has happened yet.
    pub(super) fn new(server: &str, health: Part, metrics: Metrics) -> Self {
        let ledger = Ledger::new(server, KINDS.to_vec());
        if let Some(why) = ledger.waiting() {
            health.waiting(why);
        }
        let (ledger, changed) = (Mutex::new(ledger), Notify::new());
        Self(Arc::new(Inner { ledger, health, metrics, changed }))
    }

    /// The metrics.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// A request for a kind failed.
    pub(super) fn failed(&self, kind: ObjectKind, trouble: Trouble) {
        self.0.metrics.failed(kind, trouble.cause);
        self.tell(|ledger| ledger.trouble(kind, trouble, Instant::now()));
    }

    /// A request for a kind was answered as it should be.
    pub(super) fn answered(&self, kind: ObjectKind) {
        self.tell(|ledger| ledger.answered(kind));
    }

    /// Which kinds still miss a complete list.
    pub(super) fn missing(&self, missing: Vec<ObjectKind>) {
        self.tell(|ledger| ledger.missing(missing));
    }

    /// Says what is due, whenever it is. Never ends.
    pub(super) async fn run(&self) {
        loop {
            let due = self.ledger().due();
            let at_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = at_due => self.tell(|_| {}),
                () = self.0.changed.notified() => {}
            }
        }
    }

    fn tell(&self, change: impl FnOnce(&mut Ledger)) {
        let mut ledger = self.ledger();
        change(&mut ledger);
        for line in ledger.lines(Instant::now()) {
            match line {
                Line::Began(words) => warn!("{words}"),
                Line::Over(words) => info!("{words}"),
            }
        }
        self.0.metrics.causes(&ledger.causes());
        match (ledger.waiting(), ledger.degraded()) {
            (Some(why), _) => self.0.health.waiting(why),
            (None, Some(why)) => self.0.health.degraded(why),
            (None, None) => self.0.health.ready(),
        }
        drop(ledger);
        self.0.changed.notify_one();
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
