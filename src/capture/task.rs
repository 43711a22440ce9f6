//! The reconciler's thread: updates in, snapshots out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use futures::executor::block_on;
use futures::future::{Either, pending, select};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tracing::{debug, error, info, warn};

use super::names::Names;
use super::{Metrics, Outcome, Reconciler};
use crate::model::{Finding, Pins, Severity};
use crate::source::Update;

/// What is known of the pinned network namespaces at any time.
type PinsReceiver = watch::Receiver<Option<Arc<Pins>>>;

/// Reconciles on a thread of its own, since it is work, and no stream should wait for it: takes
/// updates until their sender is gone, and publishes what comes of each round. The mesh-DNS file,
/// if there is one, gets its records and its heartbeat from this thread and no other. `pins` are the
/// pinned network namespaces, as they are at any time.
///
/// # Errors
/// Where the system gives no thread.
pub fn spawn(
    reconciler: Reconciler,
    updates: Receiver<Update>,
    pins: Option<PinsReceiver>,
    metrics: Metrics,
    names: Option<Names>,
    publish: impl FnMut(Outcome) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("reconciler".into());
    thread.spawn(move || run(reconciler, updates, pins, &metrics, names, publish))
}

/// Takes updates until their sender is gone: all that have queued, then one round of work. A round
/// that panics is reported and leaves what is served as it is; the next update is tried anew, or
/// the next heartbeat, which is not answered until a round goes well.
fn run(
    mut reconciler: Reconciler,
    mut updates: Receiver<Update>,
    mut pins: Option<PinsReceiver>,
    metrics: &Metrics,
    mut names: Option<Names>,
    mut publish: impl FnMut(Outcome),
) {
    let (mut well, mut begun) = (true, false);
    while let Some(turn) = next(&mut updates, pins.as_mut(), names.as_mut()) {
        let started = Instant::now();
        if let (Turn::Beat, true, Some(names)) = (&turn, well, &names) {
            names.vouch();
            continue;
        }
        begun |= matches!(turn, Turn::Update(_));
        if !begun {
            // Before the first complete state there is nothing to serve; it will find the pins.
            continue;
        }
        let round = catch_unwind(AssertUnwindSafe(|| {
            if let Turn::Update(update) = turn {
                reconciler.apply(update);
            }
            while let Ok(more) = updates.try_recv() {
                reconciler.apply(more);
            }
            if let Some(pins) = &mut pins {
                reconciler.pinned(pins.borrow_and_update().clone());
            }
            reconciler.reconcile()
        }));
        well = round.is_ok();
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
        let changed = outcome.snapshot.is_some();
        publish(outcome);
        if let (true, Some(names), Some(projection)) =
            (changed, &mut names, reconciler.projection())
        {
            names.projected(projection);
        }
    }
}

/// What the thread does next.
enum Turn {
    /// An update came.
    Update(Update),
    /// The pinned network namespaces changed.
    Pins,
    /// The writer of the mesh-DNS file asks whether this thread lives.
    Beat,
}

/// Waits for the next turn; `None` when no update can come any more.
fn next(
    updates: &mut Receiver<Update>,
    pins: Option<&mut PinsReceiver>,
    names: Option<&mut Names>,
) -> Option<Turn> {
    let beat = async {
        match names {
            Some(names) => names.beat().await,
            None => pending().await,
        }
    };
    let pinned = async {
        // Where nobody looks any more, nothing changes any more.
        if let Some(pins) = pins
            && pins.changed().await.is_ok()
        {
            return;
        }
        pending().await
    };
    let (beat, pinned) = (pin!(beat), pin!(pinned));
    let rare = select(beat, pinned);
    // Beats are rare and cost nothing, so they come first.
    match block_on(select(rare, pin!(updates.recv()))) {
        Either::Left((Either::Left(_), _)) => Some(Turn::Beat),
        Either::Left((Either::Right(_), _)) => Some(Turn::Pins),
        Either::Right((update, _)) => update.map(Turn::Update),
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
