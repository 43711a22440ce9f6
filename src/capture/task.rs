//! The reconciler's thread: updates in, snapshots out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use futures::executor::block_on;
use futures::future::pending;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::watch;
use tracing::{debug, error, info, warn};

use super::names::Names;
use super::{Metrics, Outcome, Reconciler};
use crate::model::{Finding, Pins, Severity};
use crate::source::Update;
use crate::xds::{Fate, Grounds};

/// What the reconciler hears.
#[derive(Debug)]
pub struct Inbox {
    /// From the source. When its sender is gone, the reconciler ends.
    pub updates: Receiver<Update>,
    /// What became of snapshots, where they are tried on a few proxies first.
    pub fates: Option<UnboundedReceiver<Fate>>,
    /// The pinned network namespaces, as they are at any time.
    pub pins: Option<watch::Receiver<Option<Arc<Pins>>>>,
    /// From whoever asks something.
    pub questions: Option<Receiver<Question>>,
}

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
    inbox: Inbox,
    metrics: Metrics,
    names: Option<Names>,
    publish: impl FnMut(&Outcome) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("reconciler".into());
    thread.spawn(move || run(reconciler, inbox, &metrics, names, publish))
}

/// Takes updates until their sender is gone: all that have queued, then one round of work. A round
/// that panics is reported and leaves what is served as it is; the next update is tried anew, or
/// the next heartbeat, which is not answered until a round goes well.
fn run(
    mut reconciler: Reconciler,
    mut inbox: Inbox,
    metrics: &Metrics,
    mut names: Option<Names>,
    mut publish: impl FnMut(&Outcome),
) {
    let (mut well, mut begun) = (true, false);
    reconciler.tried(inbox.fates.is_some());
    while let Some(turn) = next(&mut inbox, names.as_mut()) {
        let started = Instant::now();
        let turn = match turn {
            Turn::Question(question) => {
                // One that fails tells its asker by going away, and costs nobody else anything.
                let _ = catch_unwind(AssertUnwindSafe(|| question(&reconciler)));
                continue;
            }
            Turn::Fate(fate @ Fate::Released(..)) => {
                // It tells what all have, and changes nothing of what they are to have: no round.
                if catch_unwind(AssertUnwindSafe(|| hear(&mut reconciler, &fate, metrics))).is_err()
                {
                    metrics.failed();
                    error!("what a snapshot came to could not be noted, which is a bug");
                }
                continue;
            }
            turn => turn,
        };
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
            match turn {
                Turn::Update(update) => reconciler.apply(update),
                Turn::Fate(fate) => hear(&mut reconciler, &fate, metrics),
                Turn::Beat | Turn::Pins | Turn::Question(_) => {}
            }
            while let Ok(more) = inbox.updates.try_recv() {
                reconciler.apply(more);
            }
            if let Some(pins) = &mut inbox.pins {
                reconciler.pinned(pins.borrow_and_update().clone());
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
        metrics.round(&outcome, started.elapsed());
        if let Some(snapshot) = &outcome.snapshot {
            let took = started.elapsed();
            debug!(generation = snapshot.generation, ?took, "a new snapshot");
            metrics.published(snapshot, reconciler.projection());
        }
        publish(&outcome);
        if let (true, Some(names), Some(projection)) =
            (outcome.snapshot.is_some(), &mut names, reconciler.projection())
        {
            names.projected(projection);
        }
        // Last, since nobody who is served need wait for the log.
        tell(&outcome);
    }
}

/// What the thread does next.
enum Turn {
    /// An update came.
    Update(Update),
    /// The pinned network namespaces changed.
    Pins,
    /// A snapshot was released to all, or refused by a proxy that was asked first.
    Fate(Fate),
    /// The writer of the mesh-DNS file asks whether this thread lives.
    Beat,
    /// Somebody asks something.
    Question(Question),
}

/// Waits for the next turn; `None` when no update can come any more.
fn next(inbox: &mut Inbox, names: Option<&mut Names>) -> Option<Turn> {
    let beat = async {
        match names {
            Some(names) => names.beat().await,
            None => pending().await,
        }
    };
    let Inbox { updates, fates, pins, questions } = inbox;
    let fate = awaited(fates.as_mut().map(UnboundedReceiver::recv));
    let pinned = async {
        // Where nobody looks any more, nothing changes any more.
        if let Some(pins) = pins
            && pins.changed().await.is_ok()
        {
            return;
        }
        pending::<()>().await;
    };
    let asked = awaited(questions.as_mut().map(Receiver::recv));
    block_on(async {
        tokio::select! {
            // All but updates are rare and cost little, so they come first.
            biased;
            () = beat => Some(Turn::Beat),
            fate = fate => Some(Turn::Fate(fate)),
            () = pinned => Some(Turn::Pins),
            question = asked => Some(Turn::Question(question)),
            update = updates.recv() => update.map(Turn::Update),
        }
    })
}

/// What comes next; never, where nothing can come any more.
async fn awaited<T>(next: Option<impl Future<Output = Option<T>>>) -> T {
    let came = match next {
        Some(next) => next.await,
        None => None,
    };
    match came {
        Some(came) => came,
        None => pending().await,
    }
}

/// Takes in what became of a snapshot. What follows from a refusal is worked on like a change.
fn hear(reconciler: &mut Reconciler, fate: &Fate, metrics: &Metrics) {
    metrics.heard(fate);
    let held = reconciler.hear(fate, &Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    match fate {
        Fate::Released(snapshot, Grounds::TimePassed) => info!(
            generation = snapshot.generation,
            "the proxies that were asked first did not answer in time; it is served to all"
        ),
        Fate::Released(snapshot, grounds) => {
            debug!(generation = snapshot.generation, ?grounds, "served to all");
        }
        Fate::Refused { snapshot, node, refusal } if held.is_empty() => error!(
            generation = snapshot.generation,
            %node,
            words = refusal.words,
            "a proxy that was asked first refused the snapshot, and no Service in it is to blame; it is tried on others"
        ),
        Fate::Refused { snapshot, node, refusal } => {
            let held: Vec<String> = held.iter().take(8).map(ToString::to_string).collect();
            warn!(
                generation = snapshot.generation,
                %node,
                words = refusal.words,
                services = held.join(", "),
                "a proxy that was asked first refused the snapshot; what changed of these Services is held back"
            );
        }
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
