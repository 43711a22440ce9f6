//! The sockets: bound beside those of a predecessor, and given up to a successor without a loss.

mod datagrams;
mod sockets;
mod tcp;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle as Task;

use super::engine::Engine;
use super::seats::Seats;
use datagrams::Datagrams;
use udp::Signals;

/// How many TCP connections there may be, one client's being an eighth of them.
const CONNECTIONS: usize = 1024;
/// How long answers that are owed may take when the process ends.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// An address that cannot be served.
#[derive(Debug, thiserror::Error)]
#[error(
    "{address} cannot be bound ({proto}): {source}; choose addresses of this machine with --listen, and see that no other program has the port"
)]
pub struct BindError {
    address: SocketAddr,
    proto: &'static str,
    source: io::Error,
}

/// All sockets, bound and not yet served: from now on queries wait for us.
#[derive(Debug)]
pub struct Bound {
    udp: Vec<Datagrams>,
    tcp: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

/// The sockets, served.
#[derive(Debug)]
pub struct Server {
    signals: Arc<Signals>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    listeners: Vec<Task<()>>,
}

impl Bound {
    /// Binds all addresses by UDP and TCP; each with this many UDP sockets, among which the
    /// system spreads the clients. Of an address with port 0 both get the same free port.
    ///
    /// # Errors
    /// Where one cannot be bound.
    pub fn new(addresses: &[SocketAddr], sockets: usize) -> Result<Self, BindError> {
        let mut bound = Self { udp: Vec::new(), tcp: Vec::new(), addresses: Vec::new() };
        for address in addresses {
            let failed = |proto| move |source| BindError { address: *address, proto, source };
            let listener = sockets::tcp(*address).and_then(TcpListener::from_std);
            let listener = listener.map_err(failed("TCP"))?;
            let address = listener.local_addr().map_err(failed("TCP"))?;
            for _ in 0..sockets.max(1) {
                bound.udp.push(Datagrams::bind(address).map_err(failed("UDP"))?);
            }
            bound.tcp.push(listener);
            bound.addresses.push(address);
        }
        Ok(bound)
    }

    /// The addresses with their real ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves them.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn serve(self, engine: &Arc<Engine>) -> io::Result<Server> {
        let (stop, stopping) = watch::channel(false);
        let signals = Arc::new(Signals::default());
        let shared = tcp::Shared {
            engine: engine.clone(),
            signals: signals.clone(),
            seats: Seats::new(CONNECTIONS),
            stopping,
        };
        let listeners = self.tcp.into_iter().map(|listener| {
            let shared = shared.clone();
            tokio::spawn(tcp::accept(listener, shared))
        });
        let listeners = listeners.collect();
        let runtime = tokio::runtime::Handle::current();
        let threads = self
            .udp
            .into_iter()
            .map(|socket| udp::spawn(socket, engine.clone(), signals.clone(), runtime.clone()));
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(Server { signals, stop, threads, listeners })
    }
}

impl Server {
    /// Stops taking queries, answers those that have come, and returns when all is said. Whoever
    /// else is bound to the addresses gets every later query.
    pub async fn drain(self) {
        self.signals.retire.store(true, Ordering::SeqCst);
        // Nobody listens if all connections are gone.
        let _ = self.stop.send(true);
        for listener in self.listeners {
            // One that panicked has no connections left to take.
            let _ = listener.await;
        }
        let begun = Instant::now();
        let busy = |threads: &[JoinHandle<()>]| threads.iter().any(|thread| !thread.is_finished());
        while (busy(&self.threads) || tcp::owes(&self.signals)) && begun.elapsed() < LAST_ANSWERS {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
