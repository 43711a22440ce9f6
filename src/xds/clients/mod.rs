//! The clients: every stream that is open, for whoever asks what they have.
//!
//! Nothing is kept for it resource by resource. A stream's state machine knows what its client was
//! sent and what it said; it stands here behind a lock, which the stream holds while it decides and
//! never while it sends, so that a client that does not read is seen like any other. Who asks
//! copies what is shared anyway and looks at it without the lock.

mod ledger;
mod report;
mod resources;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

pub(super) use ledger::{Ledger, beginning};
pub use ledger::{Refused, Sent};
pub use report::{KindReport, Progress, Report};
pub use resources::{Config, Delivery};

use super::{Kind, Protocol, Session, Snapshot};

/// All streams that are open.
#[derive(Default)]
pub struct Clients {
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
    next: AtomicU64,
}

/// One stream.
pub(super) struct Client {
    id: u64,
    peer: Arc<str>,
    since: SystemTime,
    protocol: Protocol,
    only: Option<Kind>,
    state: Mutex<State>,
}

/// What a stream decides by, and what it did.
pub(super) struct State {
    pub(super) session: Session,
    pub(super) ledger: Ledger,
}

impl Clients {
    /// Enters a stream. It leaves when the place is dropped (statement 25).
    pub(super) fn enter(self: &Arc<Self>, session: Session, peer: Arc<str>) -> Place {
        let id = self.next.fetch_add(1, Relaxed);
        let (protocol, only) = (session.protocol, session.only);
        let state = Mutex::new(State { session, ledger: Ledger::new(protocol) });
        let since = SystemTime::now();
        let client = Arc::new(Client { id, peer, since, protocol, only, state });
        self.open().insert(id, client.clone());
        Place { client, clients: self.clone() }
    }

    /// How each stream stands with the newest snapshot, sorted by node and then by age. A node
    /// with two streams is there twice.
    pub fn reports(&self, newest: Option<&Arc<Snapshot>>) -> Vec<Report> {
        let mut all: Vec<_> =
            self.all().iter().map(|client| (client.id, client.report(newest))).collect();
        all.sort_by(|(a, one), (b, other)| one.node.cmp(&other.node).then(a.cmp(b)));
        all.into_iter().map(|(_, report)| report).collect()
    }

    /// The resources of each stream whose node id is `wanted`, by stream as in
    /// [`reports`](Self::reports), and how each resource stands with the newest snapshot.
    pub fn configs(
        &self,
        newest: Option<&Arc<Snapshot>>,
        wanted: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (Report, Vec<Config>)> {
        let named = self.all().into_iter().filter_map(|client| {
            let node = client.lock().session.node.clone()?;
            wanted(&node).then_some((node, client.id, client))
        });
        let mut all: Vec<_> = named.collect();
        all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        all.into_iter().map(move |(_, _, client)| (client.report(newest), client.configs(newest)))
    }

    /// How many streams there are.
    pub fn count(&self) -> usize {
        self.open().len()
    }

    fn all(&self) -> Vec<Arc<Client>> {
        self.open().values().cloned().collect()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream's place among the clients, which it leaves on every way out.
pub(super) struct Place {
    client: Arc<Client>,
    clients: Arc<Clients>,
}

impl Place {
    /// The state, for as long as it takes to decide something.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.client.lock()
    }

    /// From where it came, a word for the log.
    pub(super) fn peer(&self) -> &str {
        &self.client.peer
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.open().remove(&self.client.id);
    }
}
