//! The server: listeners, connections, and their end.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::beside::{Answer, Beside};
use super::clients::Clients;
use super::heard::{Admit, Refusal};
use super::metrics::Counters;
use super::service::{Service, Shared};
use super::socket::{Socket, SocketError};
use super::stats::{Open, Stats};
use super::store::Store;

/// How long streams and connections have for an orderly end.
const DRAIN: Duration = Duration::from_secs(5);

/// HTTP/2 pings: a client that is gone without a word is noticed within 40 s (statement 27).
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(10);

/// How much of a request is taken in before it is read; large ones arrive in a few round trips.
const WINDOW: u32 = 1 << 20;

/// How much of the responses of one stream is copied ahead of the socket.
const SEND_BUFFER: usize = 64 << 10;

/// How many streams one connection may have open at a time.
const STREAMS: u32 = 1024;

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A TCP address.
    #[error("xDS cannot listen on {address}{}", hint(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A Unix socket.
    #[error(transparent)]
    Unix(#[from] SocketError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (another process has the port: stop it, or choose another)",
        io::ErrorKind::AddrNotAvailable => " (no interface of this machine has the address)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need CAP_NET_BIND_SERVICE)",
        _ => "",
    }
}

/// An address that is served.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(Socket),
}

impl Listener {
    /// Binds a TCP address; port 0 chooses one.
    pub async fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address).await;
        listener.map(Self::Tcp).map_err(|source| ListenError::Tcp { address, source })
    }

    /// Binds a Unix socket.
    pub async fn unix(path: &Path) -> Result<Self, ListenError> {
        Ok(Self::Unix(Socket::bind(path).await?))
    }

    /// The TCP address that was bound.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

/// An xDS server.
pub struct Server {
    shared: Arc<Shared>,
    tracker: TaskTracker,
}

impl Server {
    /// A server of what `store` holds. `control_plane` is how it calls itself in responses;
    /// `admit` decides by node id who is served.
    pub fn new(store: &Store, control_plane: impl Into<Arc<str>>, admit: Admit) -> Self {
        let shared = Shared {
            control_plane: control_plane.into(),
            admit,
            on_refusal: Arc::new(|_, _| {}),
            stats: Arc::default(),
            store: store.clone(),
            stop: CancellationToken::new(),
            clients: Arc::default(),
            beside: Beside::default(),
        };
        Self { shared: Arc::new(shared), tracker: TaskTracker::new() }
    }

    /// Has refusals told to `hear` as well, with the node id of who refused. It is called where
    /// streams are served, so it must not wait.
    #[must_use]
    pub fn on_refusal(mut self, hear: impl Fn(&str, &Refusal) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.shared).on_refusal = Arc::new(hear);
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

    /// Adds the counters to a registry, which reads them when it is read.
    pub fn register(&self, registry: &mut Registry) {
        let Shared { stats, clients, store, .. } = &*self.shared;
        let (stats, clients) = (stats.clone(), clients.clone());
        Counters { stats, clients, snapshots: store.subscribe() }.register(registry);
    }

    /// Serves until `shutdown` is done; then takes no more connections, ends the streams with
    /// `UNAVAILABLE`, and gives them five seconds. Sockets are closed when it returns.
    pub async fn run(self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) {
        let closed = CancellationToken::new();
        let accepting = TaskTracker::new();
        for listener in listeners {
            let accept = accept(listener, self.shared.clone(), self.tracker.clone());
            let closed = closed.clone();
            accepting.spawn(async move {
                tokio::select! { () = accept => {}, () = closed.cancelled() => {} }
            });
        }
        tokio::select! { () = shutdown => {}, () = self.shared.store.keep_time() => {} }
        closed.cancel();
        accepting.close();
        accepting.wait().await;
        self.shared.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(DRAIN, self.tracker.wait()).await.is_err() {
            let left = self.tracker.len();
            tracing::warn!(left, "xDS connections did not end in time and are cut");
        }
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>, tracker: TaskTracker) {
    loop {
        let accepted = match &listener {
            Listener::Tcp(tcp) => tcp.accept().await.map(|(stream, peer)| {
                // A response is often one small segment, and the next one must not wait for it.
                let _ = stream.set_nodelay(true);
                tracker.spawn(serve(stream, peer.to_string(), shared.clone()));
            }),
            Listener::Unix(socket) => socket.listener.accept().await.map(|(stream, _)| {
                let peer = stream.peer_cred().ok().and_then(|cred| cred.pid());
                let peer = peer.map_or_else(|| "unix".into(), |pid| format!("unix:pid={pid}"));
                tracker.spawn(serve(stream, peer, shared.clone()));
            }),
        };
        if let Err(error) = accepted {
            // Out of file descriptors, most likely: they come back as connections end.
            tracing::warn!("xDS cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Serves one connection to its end.
async fn serve<I>(io: I, peer: String, shared: Arc<Shared>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = Open::connection(&shared.stats);
    let stop = shared.stop.clone();
    let service = TowerToHyperService::new(Service::new(shared, peer.as_str()));
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(SEND_BUFFER);
    let connection = http.serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let cut = tokio::time::sleep(DRAIN);
            tokio::select! { ended = connection => ended, () = cut => Ok(()) }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(peer, "connection ended: {error}");
    }
}
