//! The store: the snapshot that is served now, and news of the next.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::Snapshot;
use super::recent::Recent;

/// Holds the current snapshot for one writer and any number of streams.
///
/// Before the first [`publish`](Self::publish) there is none, and no stream gets anything: a
/// control plane that sends emptiness first wipes every proxy (statement 11). A reader that is
/// slow sees the newest snapshot and not those it missed.
#[derive(Debug)]
pub struct Store {
    current: watch::Sender<Option<Arc<Snapshot>>>,
    pub(super) recent: Arc<Recent>,
}

impl Default for Store {
    fn default() -> Self {
        Self { current: watch::Sender::new(None), recent: Arc::default() }
    }
}

impl Store {
    /// Replaces the snapshot. The writer sees to it that generations rise; it never waits for a
    /// stream.
    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        self.publish_since(snapshot, Instant::now());
    }

    /// The same with the moment at which the oldest change came that the snapshot brings, from
    /// which is measured how long proxies wait for it.
    pub fn publish_since(&self, snapshot: Arc<Snapshot>, since: Instant) {
        self.recent.note(snapshot.generation, since);
        self.current.send_replace(Some(snapshot));
    }

    /// The snapshot that is served now.
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.current.borrow().clone()
    }

    /// News of every later snapshot.
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.current.subscribe()
    }
}
