//! Backends: servers of this process that listen inside a pod. Dropped, one closes its port and every connection.

mod dns;
mod grpc;
mod h2c;
mod http1;
pub mod noise;
mod tcp;
mod ws;

pub use dns::{DnsBackend, Zone};
pub use grpc::{Note, grpc};
pub use h2c::{H2Backend, H2Recorded};
pub use http1::{Http1Backend, Recorded, Reply};
pub use tcp::{closer, echo, greeter, sink, source};
pub use ws::ws_echo;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::net::Netns;

/// What a backend has seen.
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl Counts {
    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests begun so far; on a raw TCP protocol, none.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts a request.
    fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// A TCP server.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    counts: Arc<Counts>,
    task: AbortOnDropHandle<()>,
}

impl Backend {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has seen.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Closes its port and every connection; done when they are closed.
    pub async fn stop(self) {
        self.task.abort();
        // It was just cancelled, and says so.
        let _ = self.task.await;
    }
}

/// A server in this namespace that gives each connection to `handle`. Port 0 takes a free one.
async fn serve<F, H>(netns: &Netns, address: SocketAddr, handle: H) -> Result<Backend>
where
    H: Fn(TcpStream, Arc<Counts>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let bind = async move { Ok(TcpListener::bind(address).await?) };
    let listener = netns
        .run(bind)
        .await
        .with_context(|| format!("listening on {address} in {}", netns.name()))?;
    let address = listener.local_addr()?;
    let counts = Arc::new(Counts::default());
    let counted = counts.clone();
    let task = netns.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    counted.connections.fetch_add(1, Ordering::Relaxed);
                    // Nagle would add 40 ms to answers that are written in pieces.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(handle(stream, counted.clone()));
                }
                // A connection that ends in an error is the client's to notice.
                Some(_) = connections.join_next() => {}
            }
        }
    })?;
    Ok(Backend { address, counts, task })
}
