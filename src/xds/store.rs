//! The store: the snapshot that is served now, and news of the next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch};

use super::canary::{CanarySettings, Fate, Said, Seat, Trials};
use super::recent::Recent;
use super::{Refusal, Snapshot};

/// Hears what becomes of snapshots. It must not wait, nor call the store.
pub type OnFate = Box<dyn Fn(Fate) + Send + Sync>;

/// Holds the current snapshot for one writer and any number of streams.
///
/// Before the first [`publish`](Self::publish) there is none, and no stream gets anything: a
/// control plane that sends emptiness first wipes every proxy (statement 11). A reader that is
/// slow sees the newest snapshot and not those it missed.
#[derive(Debug, Clone, Default)]
pub struct Store(Arc<Shelf>);

/// What the clones of a store share.
pub(super) struct Shelf {
    /// What all streams are served.
    current: watch::Sender<Option<Arc<Snapshot>>>,
    canary: Option<Canary>,
    recent: Recent,
}

/// What it takes to try a snapshot on a few streams first.
struct Canary {
    hall: Mutex<Hall>,
    on_fate: OnFate,
    /// Rung when the deadline of the trial is another.
    clock: Notify,
}

struct Hall {
    trials: Trials,
    bells: BTreeMap<u64, Arc<Notify>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { current: watch::Sender::new(None), canary: None, recent: Recent::default() }
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.current.borrow().as_ref().map(|snapshot| snapshot.generation);
        f.debug_struct("Shelf").field("generation", &generation).finish_non_exhaustive()
    }
}

impl Store {
    /// A store that tries each snapshot on a few streams first. `on_fate` hears what becomes of
    /// each that was tried.
    pub fn with_canaries(settings: CanarySettings, on_fate: OnFate) -> Self {
        let hall = Hall { trials: Trials::new(settings), bells: BTreeMap::new() };
        let canary = Canary { hall: Mutex::new(hall), on_fate, clock: Notify::new() };
        Self(Arc::new(Shelf { canary: Some(canary), ..Shelf::default() }))
    }

    /// Replaces the snapshot. The writer sees to it that generations rise; it never waits for a
    /// stream.
    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        self.publish_since(snapshot, Instant::now());
    }

    /// The same with the moment at which the oldest change came that the snapshot brings, from
    /// which is measured how long proxies wait for it.
    pub fn publish_since(&self, snapshot: Arc<Snapshot>, since: Instant) {
        self.0.recent.note(snapshot.generation, since);
        match &self.0.canary {
            None => {
                self.0.current.send_replace(Some(snapshot));
            }
            Some(canary) => {
                self.0.act(canary, |trials| trials.published(snapshot, Instant::now()));
            }
        }
    }

    /// When the oldest of the changes came that are in `generation` and not in an `older` one;
    /// `None` where that is not remembered.
    pub(super) fn since(&self, older: u64, generation: u64) -> Option<Instant> {
        self.0.recent.since(older, generation)
    }

    /// The snapshot that is served to all now.
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.0.current.borrow().clone()
    }

    /// News of every later snapshot that is served to all.
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.0.current.subscribe()
    }

    /// Ends trials when their time is up; goes on for ever.
    pub(super) async fn keep_time(&self) {
        let Some(canary) = &self.0.canary else { return std::future::pending().await };
        loop {
            let deadline = canary.hall().trials.deadline();
            let due = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => self.0.act(canary, |trials| trials.tick(Instant::now())),
                () = canary.clock.notified() => {}
            }
        }
    }

    /// A seat for a stream of a node; `None` where there are no canaries.
    pub(super) fn seat(&self, node: &Arc<str>) -> Option<Seat> {
        let canary = self.0.canary.as_ref()?;
        let mut hall = canary.hall();
        let id = hall.trials.joined(node.clone());
        let bell = Arc::new(Notify::new());
        hall.bells.insert(id, bell.clone());
        Some(Seat::new(id, self.0.clone(), bell))
    }
}

impl Shelf {
    /// The snapshot that a stream is offered.
    pub(super) fn offered(&self, id: u64) -> Option<Arc<Snapshot>> {
        self.canary.as_ref().and_then(|canary| canary.hall().trials.offered(id))
    }

    /// A stream has accepted all of a snapshot.
    pub(super) fn settled(&self, id: u64, generation: u64) {
        let Some(canary) = &self.canary else { return };
        self.act(canary, |trials| trials.settled(id, generation, Instant::now()));
    }

    /// A stream has refused something of a snapshot.
    pub(super) fn refused(&self, id: u64, refusal: &Refusal) {
        let Some(canary) = &self.canary else { return };
        self.act(canary, |trials| trials.refused(id, refusal, Instant::now()));
    }

    /// A stream is gone.
    pub(super) fn left(&self, id: u64) {
        let Some(canary) = &self.canary else { return };
        canary.hall().bells.remove(&id);
        self.act(canary, |trials| trials.left(id, Instant::now()));
    }

    /// Lets the trials decide, and does what follows before the lock is given up: generations never
    /// fall, and the writer hears of fates in their order.
    fn act(&self, canary: &Canary, decide: impl FnOnce(&mut Trials) -> Said) {
        let mut hall = canary.hall();
        let before = hall.trials.deadline();
        let said = decide(&mut hall.trials);
        if let Some(released) = said.released {
            self.current.send_replace(Some(released));
        }
        for bell in said.ring.iter().filter_map(|id| hall.bells.get(id)) {
            bell.notify_one();
        }
        if hall.trials.deadline() != before {
            canary.clock.notify_one();
        }
        for fate in said.fates {
            (canary.on_fate)(fate);
        }
    }
}

impl Canary {
    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
