//! The reconciler's thread: updates in, snapshots out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::thread::JoinHandle;
use std::time::Instant;

use futures::executor::block_on;
use futures::future::{Either, pending, select};
use tokio::sync::mpsc::Receiver;
use tracing::{debug, error, info, warn};

use super::names::Names;
use super::{Metrics, Outcome, Reconciler};
use crate::model::{Finding, Severity};
use crate::source::Update;

/// A question that the reconciler's thread answers between two rounds. It is to take what it needs
/// and no time: the work is the asker's.
pub type Question = Box<dyn FnOnce(&Reconciler) + Send>;

/// Reconciles on a thread of its own, since it is work, and no stream should wait for it: takes
/// updates until their sender is gone, and publishes what comes of each round. The mesh-DNS file,
/// if there is one, gets its records and its heartbeat from this thread and no other.
///
/// # Errors
/// Where the system gives no thread.
pub fn spawn(
    reconciler: Reconciler,
    updates: Receiver<Update>,
    metrics: Metrics,
    names: Option<Names>,
    questions: Receiver<Question>,
    publish: impl FnMut(Outcome) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("reconciler".into());
    thread.spawn(move || run(reconciler, updates, &metrics, names, questions, publish))
}

/// Takes updates until their sender is gone: all that have queued, then one round of work. A round
/// that panics is reported and leaves what is served as it is; the next update is tried anew, or
/// the next heartbeat, which is not answered until a round goes well.
fn run(
    mut reconciler: Reconciler,
    mut updates: Receiver<Update>,
    metrics: &Metrics,
    mut names: Option<Names>,
    mut questions: Receiver<Question>,
    mut publish: impl FnMut(Outcome),
) {
    let mut well = true;
    while let Some(turn) = next(&mut updates, names.as_mut(), &mut questions) {
        let started = Instant::now();
        let turn = match turn {
            Turn::Question(question) => {
                // One that fails tells its asker by going away, and costs nobody else anything.
                let _ = catch_unwind(AssertUnwindSafe(|| question(&reconciler)));
                continue;
            }
            turn => turn,
        };
        if let (Turn::Beat, true, Some(names)) = (&turn, well, &names) {
            names.vouch();
            continue;
        }
        let round = catch_unwind(AssertUnwindSafe(|| {
            if let Turn::Update(update) = turn {
                reconciler.apply(update);
            }
            while let Ok(more) = updates.try_recv() {
                reconciler.apply(more);
            }
            reconciler.reconcile()
        }));
        well = round.is_ok();
        let Ok(mut outcome) = round else {
            metrics.failed();
            error!("reconciling failed in a way that it must not; what was served before still is");
            continue;
        };
        outcome.since = Some(started);
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
    /// The writer of the mesh-DNS file asks whether this thread lives.
    Beat,
    /// Somebody asks something.
    Question(Question),
}

/// Waits for the next turn; `None` when no update can come any more.
fn next(
    updates: &mut Receiver<Update>,
    names: Option<&mut Names>,
    questions: &mut Receiver<Question>,
) -> Option<Turn> {
    let beat = async {
        match names {
            Some(names) => names.beat().await,
            None => pending().await,
        }
    };
    let asked = async {
        match questions.recv().await {
            Some(question) => question,
            None => pending().await,
        }
    };
    // Beats and questions are rare and cost nothing, so they come first.
    match block_on(select(pin!(beat), select(pin!(asked), pin!(updates.recv())))) {
        Either::Left(((), _)) => Some(Turn::Beat),
        Either::Right((Either::Left((question, _)), _)) => Some(Turn::Question(question)),
        Either::Right((Either::Right((update, _)), _)) => update.map(Turn::Update),
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
