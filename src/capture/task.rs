//! The reconciler's thread: updates in, snapshots out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::mpsc::Receiver;
use tracing::{debug, error, info, warn};

use super::{Metrics, Outcome, Reconciler};
use crate::model::{Finding, Severity};
use crate::source::Update;

/// Reconciles on a thread of its own, since it is work, and no stream should wait for it: takes
/// updates until their sender is gone, and publishes what comes of each round.
///
/// # Errors
/// Where the system gives no thread.
pub fn spawn(
    reconciler: Reconciler,
    updates: Receiver<Update>,
    metrics: Metrics,
    publish: impl FnMut(Outcome) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("reconciler".into());
    thread.spawn(move || run(reconciler, updates, &metrics, publish))
}

/// Takes updates until their sender is gone: all that have queued, then one round of work. A round
/// that panics is reported and leaves what is served as it is; the next update is tried anew.
fn run(
    mut reconciler: Reconciler,
    mut updates: Receiver<Update>,
    metrics: &Metrics,
    mut publish: impl FnMut(Outcome),
) {
    while let Some(update) = updates.blocking_recv() {
        let started = Instant::now();
        let round = catch_unwind(AssertUnwindSafe(|| {
            reconciler.apply(update);
            while let Ok(more) = updates.try_recv() {
                reconciler.apply(more);
            }
            reconciler.reconcile()
        }));
        let Ok(outcome) = round else {
            metrics.failed();
            error!("reconciling failed in a way that it must not; what was served before still is");
            continue;
        };
        tell(&outcome);
        metrics.round(&outcome, started.elapsed());
        if let Some(snapshot) = &outcome.snapshot {
            let took = started.elapsed();
            debug!(generation = snapshot.generation, ?took, "a new snapshot");
            metrics.published(snapshot, reconciler.projection());
        }
        publish(outcome);
    }
}

/// Logs what has changed among the findings: each once when it appears and once when it is gone.
fn tell(outcome: &Outcome) {
    for finding in &outcome.appeared {
        let Finding { object, reason, field, .. } = finding;
        let reason = reason.as_str();
        match finding.severity {
            Severity::Problem => warn!(%object, reason, field, "{finding}"),
            Severity::Warning => info!(%object, reason, field, "{finding}"),
        }
    }
    for finding in &outcome.vanished {
        let object = &finding.object;
        let reason = finding.reason.as_str();
        info!(%object, reason, field = finding.field, "resolved: {reason} of {object}");
    }
}
