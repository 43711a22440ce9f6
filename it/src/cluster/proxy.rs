//! A network between a client and a server that a test can break.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, watch};
use tokio_util::task::AbortOnDropHandle;

use super::address::Claim;
use super::pipe::{Weather, carry};
use crate::net::Netns;

/// A TCP proxy. Dropped, it closes all of its connections.
#[derive(Debug)]
pub struct Proxy {
    near: End,
    far: End,
    weather: watch::Sender<Weather>,
    counts: Arc<Counts>,
    // None while it refuses connections.
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
    _claim: Option<Claim>,
}

/// Where one side of a proxy is: an address, and the runtime in whose network namespace it is meant.
#[derive(Debug, Clone)]
pub struct End {
    runtime: Handle,
    address: SocketAddr,
}

/// How many connections there were, and are.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    open: AtomicU64,
}

impl End {
    /// This address in our own network namespace.
    pub fn here(address: SocketAddr) -> Self {
        Self { runtime: Handle::current(), address }
    }

    /// This address in another one. The proxy must go before the namespace.
    pub fn inside(netns: &Netns, address: SocketAddr) -> Result<Self> {
        Ok(Self { runtime: netns.handle()?, address })
    }

    async fn listen(&self) -> Result<TcpListener> {
        let bound = self.runtime.spawn(TcpListener::bind(self.address)).await?;
        bound.with_context(|| format!("a proxy cannot listen on {}", self.address))
    }

    async fn dial(&self) -> std::io::Result<TcpStream> {
        let dialled = self.runtime.spawn(TcpStream::connect(self.address)).await;
        dialled.map_err(std::io::Error::other)?
    }
}

impl Proxy {
    /// A proxy to this address, at a loopback address of its own with the same port.
    pub async fn to(far: SocketAddr) -> Result<Self> {
        let claim = Claim::new(far.port())?;
        let near = End::here(claim.address());
        Self::start(near, End::here(far), Some(claim)).await
    }

    /// A proxy from one network namespace into another: `near` is where it listens.
    pub async fn between(near: End, far: End) -> Result<Self> {
        Self::start(near, far, None).await
    }

    async fn start(near: End, far: End, claim: Option<Claim>) -> Result<Self> {
        let proxy = Self {
            near,
            far,
            weather: watch::Sender::new(Weather::default()),
            counts: Arc::default(),
            listening: Mutex::new(None),
            _claim: claim,
        };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.near.address
    }

    /// Closes all connections; new ones are taken.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// Refuses new connections; those that are open stay.
    pub async fn refuse(&self) {
        if let Some(listening) = self.listening.lock().await.take() {
            listening.abort();
            // Only when the task is gone is the socket closed. That it was aborted is what we wanted.
            let _ = listening.await;
        }
    }

    /// Takes new connections again.
    pub async fn accept(&self) -> Result<()> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            let listener = self.near.listen().await?;
            let (far, counts) = (self.far.clone(), Arc::clone(&self.counts));
            let weather = self.weather.subscribe();
            let task = tokio::spawn(serve(listener, far, weather, counts));
            *listening = Some(AbortOnDropHandle::new(task));
        }
        Ok(())
    }

    /// A partition: nothing that is sent arrives, an end of a connection neither, and nobody is told. What was sent
    /// meanwhile arrives when it is over. A new connection seems to be taken (the kernel does that), and is silent.
    pub fn blackhole(&self, silent: bool) {
        self.weather.send_modify(|weather| weather.silent = silent);
    }

    /// From now on, whatever is sent arrives so much later, in each direction.
    pub fn delay(&self, delay: Duration) {
        self.weather.send_modify(|weather| weather.delay = delay);
    }

    /// How many connections it has taken so far.
    pub fn accepted(&self) -> u64 {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// How many connections are open now.
    pub fn open(&self) -> u64 {
        self.counts.open.load(Ordering::Relaxed)
    }
}

/// Takes connections until it is aborted, which leaves them alone.
async fn serve(
    listener: TcpListener,
    far: End,
    weather: watch::Receiver<Weather>,
    counts: Arc<Counts>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of file descriptors, say: it passes, or the test fails for want of an answer.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        counts.accepted.fetch_add(1, Ordering::Relaxed);
        counts.open.fetch_add(1, Ordering::Relaxed);
        let (far, weather, counts) = (far.clone(), weather.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            carry(client, || async move { far.dial().await }, weather).await;
            counts.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
