//! The server: what it is made of, and its end.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::accept;
use super::beside::{Answer, Beside};
use super::clients::Clients;
use super::heard::{Admit, Refusal};
use super::limits::{Limits, Room};
use super::listen::Listener;
use super::metrics::Counters;
use super::peer::Vouch;
use super::service::Shared;
use super::stats::Stats;
use super::store::Store;

/// How long streams and connections that were told to end have for an orderly end.
pub(super) const LAST: Duration = Duration::from_secs(5);

/// An xDS server.
pub struct Server {
    shared: Arc<Shared>,
    tracker: TaskTracker,
    drain: Duration,
}

impl Server {
    /// A server of what `store` holds. `control_plane` is how it calls itself in responses;
    /// `admit` decides by node id who is served.
    pub fn new(store: &Store, control_plane: impl Into<Arc<str>>, admit: Admit) -> Self {
        let stats = Arc::<Stats>::default();
        let shared = Shared {
            control_plane: control_plane.into(),
            admit,
            vouch: Arc::new(|_| Ok(())),
            on_refusal: Arc::new(|_, _| {}),
            room: Arc::new(Room::new(Limits::default(), stats.clone())),
            lately: Arc::default(),
            stats,
            store: store.clone(),
            stop: CancellationToken::new(),
            clients: Arc::default(),
            beside: Beside::default(),
        };
        Self { shared: Arc::new(shared), tracker: TaskTracker::new(), drain: Duration::ZERO }
    }

    /// Has refusals told to `hear` as well, with the node id of who refused. It is called where
    /// streams are served, so it must not wait.
    #[must_use]
    pub fn on_refusal(mut self, hear: impl Fn(&str, &Refusal) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.shared).on_refusal = Arc::new(hear);
        self
    }

    /// Decides which of the peers that prove who they are may speak for which node.
    #[must_use]
    pub fn vouch(mut self, vouch: Vouch) -> Self {
        Arc::make_mut(&mut self.shared).vouch = vouch;
        self
    }

    /// Sets what peers may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        let stats = self.shared.stats.clone();
        Arc::make_mut(&mut self.shared).room = Arc::new(Room::new(limits, stats));
        self
    }

    /// Sets over how long the streams end once it is told to stop: each at any moment of it, so that
    /// not all proxies fall upon the next server at once.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Has requests for other services than the discovery services answered by `answer`.
    #[must_use]
    pub fn beside(mut self, answer: Answer) -> Self {
        Arc::make_mut(&mut self.shared).beside = Beside::new(answer);
        self
    }

    /// The streams that are open.
    pub fn clients(&self) -> Arc<Clients> {
        self.shared.clients.clone()
    }

    /// The counters.
    pub fn stats(&self) -> Arc<Stats> {
        self.shared.stats.clone()
    }

    /// What all its streams share.
    #[cfg(test)]
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Adds the counters to a registry, which reads them when it is read.
    pub fn register(&self, registry: &mut Registry) {
        let Shared { stats, clients, store, .. } = &*self.shared;
        let (stats, clients) = (stats.clone(), clients.clone());
        Counters { stats, clients, snapshots: store.subscribe() }.register(registry);
    }

    /// Serves until `shutdown` is done; then takes no more connections, ends the streams with
    /// `UNAVAILABLE` over the time of the drain, and gives each five seconds. Sockets are closed when
    /// it returns.
    pub async fn run(self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) {
        let closed = CancellationToken::new();
        let accepting = TaskTracker::new();
        for listener in listeners {
            let accept = accept(listener, self.shared.clone(), self.tracker.clone(), self.drain);
            let closed = closed.clone();
            accepting.spawn(async move {
                tokio::select! { () = accept => {}, () = closed.cancelled() => {} }
            });
        }
        let stop = async {
            shutdown.await;
            closed.cancel();
            accepting.close();
            accepting.wait().await;
            self.shared.stop.cancel();
            self.tracker.close();
            if tokio::time::timeout(self.drain + LAST, self.tracker.wait()).await.is_err() {
                let left = self.tracker.len();
                tracing::warn!(left, "xDS connections did not end in time and are cut");
            }
        };
        // Trials go on while streams do.
        tokio::select! { () = stop => {}, () = self.shared.store.keep_time() => {} }
    }
}
