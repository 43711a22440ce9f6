//! Sockets to one upstream that many queries share, each for a while.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::op::Message;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::exchange::{self, ExchangeError};
use crate::dns::cache::Key;

/// How many sockets an upstream has at a time; ports are random, so this is also how many an
/// attacker has to guess among.
const SOCKETS: usize = 8;
/// After so many queries, or so long, a socket gives way to one of another port. That also ends
/// whatever the network on the way remembers of it, such as a backend that is gone.
const QUERIES: u32 = 2_000;
/// See [`QUERIES`].
const LIFE: Duration = Duration::from_secs(30);
/// How often a socket's task looks whether it is still needed.
const LOOK: Duration = Duration::from_secs(2);

/// The sockets of one upstream.
#[derive(Debug)]
pub struct Pool {
    upstream: SocketAddr,
    sockets: Vec<Mutex<Option<Arc<Shared>>>>,
    next: AtomicUsize,
    strange: Strange,
}

/// Called for each datagram that answers nothing that was asked.
#[derive(Clone)]
pub struct Strange(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Strange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Strange")
    }
}

/// One socket and the queries that wait on it, by id.
#[derive(Debug)]
struct Shared {
    socket: UdpSocket,
    waiters: Mutex<HashMap<u16, Waiter>>,
    born: Instant,
    queries: AtomicU32,
    retired: AtomicBool,
}

#[derive(Debug)]
struct Waiter {
    key: Key,
    answer: oneshot::Sender<Result<Message, ExchangeError>>,
}

/// Takes a query off its socket, whatever becomes of it.
struct Waits<'a>(&'a Shared, u16);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiters).remove(&self.1);
    }
}

impl Pool {
    /// A pool without sockets yet.
    pub fn new(upstream: SocketAddr, strange: Strange) -> Self {
        let sockets = (0..SOCKETS).map(|_| Mutex::default()).collect();
        Self { upstream, sockets, next: AtomicUsize::new(0), strange }
    }

    /// Asks from one of the sockets.
    ///
    /// # Errors
    /// Where the upstream cannot be reached. Without an answer it waits for ever.
    pub async fn ask(&self, key: &Key, edns: bool) -> Result<Message, ExchangeError> {
        let shared = self.shared().await?;
        let (answer, answered) = oneshot::channel();
        let mut query = exchange::message(key, edns);
        {
            let mut waiters = lock(&shared.waiters);
            while waiters.contains_key(&query.metadata.id) {
                query.metadata.id = Message::query().metadata.id;
            }
            waiters.insert(query.metadata.id, Waiter { key: key.clone(), answer });
        }
        let _waits = Waits(&shared, query.metadata.id);
        shared.socket.send(&query.to_vec()?).await?;
        answered.await.unwrap_or(Err(ExchangeError::Closed))
    }

    /// The socket whose turn it is, a new one if need be.
    async fn shared(&self) -> io::Result<Arc<Shared>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % SOCKETS;
        let Some(slot) = self.sockets.get(turn) else { return Err(io::ErrorKind::NotFound.into()) };
        if let Some(shared) = lock(slot).as_ref()
            && shared.queries.fetch_add(1, Ordering::Relaxed) < QUERIES
            && shared.born.elapsed() < LIFE
            && !shared.retired.load(Ordering::Relaxed)
        {
            return Ok(shared.clone());
        }
        let fresh = Arc::new(Shared {
            socket: exchange::socket(self.upstream).await?,
            waiters: Mutex::default(),
            born: Instant::now(),
            queries: AtomicU32::new(1),
            retired: AtomicBool::new(false),
        });
        tokio::spawn(receive(fresh.clone(), self.strange.clone()));
        if let Some(before) = lock(slot).replace(fresh.clone()) {
            before.retired.store(true, Ordering::Relaxed);
        }
        Ok(fresh)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for slot in &self.sockets {
            if let Some(shared) = lock(slot).take() {
                shared.retired.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Hands answers to those who wait for them, until the socket is retired and nobody does.
async fn receive(shared: Arc<Shared>, strange: Strange) {
    let mut packet = vec![0; usize::from(u16::MAX)];
    loop {
        let length = match timeout(LOOK, shared.socket.recv(&mut packet)).await {
            Ok(Ok(length)) => length,
            Ok(Err(error)) => {
                // The upstream's machine says that nobody listens: that is for all who wait.
                shared.retired.store(true, Ordering::Relaxed);
                for (_, waiter) in std::mem::take(&mut *lock(&shared.waiters)) {
                    let error = io::Error::new(error.kind(), error.to_string());
                    // Whoever waited may have gone.
                    let _ = waiter.answer.send(Err(error.into()));
                }
                return;
            }
            Err(_) if shared.retired.load(Ordering::Relaxed) => {
                if lock(&shared.waiters).is_empty() {
                    return;
                }
                continue;
            }
            Err(_) => continue,
        };
        let Ok(message) = Message::from_vec(packet.get(..length).unwrap_or_default()) else {
            (strange.0)();
            continue;
        };
        let mut waiters = lock(&shared.waiters);
        let id = message.metadata.id;
        let fits = waiters.get(&id).is_some_and(|one| exchange::answers(&message, &one.key));
        match waiters.remove(&id) {
            Some(waiter) if fits => {
                let _ = waiter.answer.send(Ok(message));
            }
            Some(waiter) => {
                waiters.insert(id, waiter);
                (strange.0)();
            }
            // An answer to a query that was given up.
            None => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
