//! Queries by datagram: a thread for each socket.
//!
//! What the table or the cache answers never leaves the thread; what has to be asked upstream is
//! handed to the runtime.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::{debug, warn};

use super::datagrams::{Datagrams, Peer};
use crate::dns::engine::{Engine, Step};
use crate::dns::query::Proto;

/// The longest datagram, in bytes.
const LONGEST: usize = 65_535;

/// How long a thread rests after an error, so that one that lasts does not keep a core busy.
const AFTER_ERROR: Duration = Duration::from_millis(1);

/// What the threads are told, and what they tell.
#[derive(Debug, Default)]
pub struct Signals {
    /// The socket is to take nothing new, and the thread to end once it is empty.
    pub retire: AtomicBool,
    /// Answers that are still owed.
    pub owed: AtomicUsize,
}

/// One owed answer, counted for as long as it is.
#[derive(Debug)]
pub struct Owed(Arc<Signals>);

impl Owed {
    /// One more.
    pub fn new(signals: &Arc<Signals>) -> Self {
        signals.owed.fetch_add(1, Ordering::SeqCst);
        Self(signals.clone())
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serves a socket on a thread of its own.
///
/// # Errors
/// Where the system gives no thread.
pub fn spawn(
    socket: Datagrams,
    engine: Arc<Engine>,
    signals: Arc<Signals>,
    runtime: Handle,
) -> io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("mesh-dns-udp".into());
    let socket = Arc::new(socket);
    thread.spawn(move || run(&socket, &engine, &signals, &runtime))
}

fn run(socket: &Arc<Datagrams>, engine: &Arc<Engine>, signals: &Arc<Signals>, runtime: &Handle) {
    let mut packet = vec![0; LONGEST];
    let mut retired = false;
    loop {
        // Before the read: what came until then is read, and only after a whole wait without
        // anything is the socket empty.
        let retires = signals.retire.load(Ordering::SeqCst);
        if retires && !retired {
            if let Err(error) = socket.retire() {
                warn!(%error, "the socket could not be retired; a query may be lost");
            }
            retired = true;
        }
        let (length, peer) = match socket.receive(&mut packet) {
            Ok(received) => received,
            Err(error) if nothing_came(&error) => {
                if retired {
                    return;
                }
                continue;
            }
            // An answer before could not be delivered: not this socket's fault.
            Err(error) => {
                debug!(%error, "reading a datagram");
                std::thread::sleep(AFTER_ERROR);
                continue;
            }
        };
        match engine.take(packet.get(..length).unwrap_or_default(), Proto::Udp, peer.address.ip()) {
            Step::Reply(answer) => send(socket, &answer, &peer),
            Step::Later(later) => {
                let (socket, engine, owed) = (socket.clone(), engine.clone(), Owed::new(signals));
                runtime.spawn(async move {
                    if let Some(answer) = engine.finish(*later).await {
                        send(&socket, &answer, &peer);
                    }
                    drop(owed);
                });
            }
            Step::Nothing => {}
        }
    }
}

fn send(socket: &Datagrams, answer: &[u8], peer: &Peer) {
    if let Err(error) = socket.send(answer, peer) {
        debug!(client = %peer.address, %error, "an answer could not be sent");
    }
}

fn nothing_came(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
