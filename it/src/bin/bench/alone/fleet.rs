//! All streams together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::stream::{Held, Shared, Stream, Told};

/// Streams, each with a connection of its own. Dropped, they are closed.
pub struct Fleet {
    server: SocketAddr,
    held: Vec<Arc<Mutex<Held>>>,
    shared: Arc<Shared>,
    tell: UnboundedSender<Told>,
    heard: UnboundedReceiver<Told>,
    tasks: Vec<AbortOnDropHandle<()>>,
    ended: Arc<Mutex<Vec<String>>>,
}

/// What all streams heard.
#[derive(Debug)]
pub struct Heard {
    /// When 99 of 100 streams had what was waited for.
    pub p99: Instant,
    /// When the last response came.
    pub last: Instant,
    /// The bytes of all responses.
    pub bytes: f64,
}

impl Fleet {
    /// This many streams of a server, not connected yet.
    pub fn new(server: SocketAddr, streams: usize) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let held = (0..streams).map(|_| Arc::default()).collect();
        let (shared, ended) = (Arc::default(), Arc::default());
        Self { server, held, shared, tell, heard, tasks: Vec::new(), ended }
    }

    /// How many streams there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Connects each, with what it held before.
    pub fn connect_all(&mut self) {
        for (number, slot) in self.held.iter().enumerate() {
            let (shared, tell) = (self.shared.clone(), self.tell.clone());
            let stream = Stream { number, server: self.server, shared, tell };
            let (slot, ended) = (slot.clone(), self.ended.clone());
            let task = tokio::spawn(async move {
                let mut held = Keep::take(slot);
                let why = match stream.run(&mut held.held).await {
                    Ok(()) => "the server ended it".to_owned(),
                    Err(error) => format!("{error:#}"),
                };
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.push(format!("stream {number}: {why}"));
            });
            self.tasks.push(AbortOnDropHandle::new(task));
        }
    }

    /// Drops all connections. What each stream held is kept.
    pub async fn drop_all(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        for task in self.tasks.drain(..) {
            // It was cut off, which is no news; what it held is put back when it has ended.
            let _ = task.await;
        }
        self.drain();
    }

    /// Takes what came: how many bytes, and when the last response.
    pub fn drain(&mut self) -> (usize, Option<Instant>) {
        let (mut bytes, mut last) = (0, None);
        while let Ok(told) = self.heard.try_recv() {
            bytes += told.bytes;
            last = last.max(Some(told.at));
        }
        (bytes, last)
    }

    /// An error where a stream has ended by itself.
    pub fn must_run(&self) -> Result<()> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.first() {
            Some(why) => bail!("{} streams ended, as {why}", ended.len()),
            None => Ok(()),
        }
    }

    /// Waits until each stream has all that it asked for, and then until all is quiet.
    pub async fn until_complete(&mut self, limit: Duration, quiet: Duration) -> Result<Heard> {
        let mut complete = BTreeMap::new();
        let streams = self.len();
        self.until(limit, quiet, |told| {
            if told.complete {
                complete.entry(told.stream).or_insert(told.at);
            }
            (complete.len() == streams).then(|| complete.values().copied().collect())
        })
        .await
    }

    /// Waits until each stream has heard of each of these types, and then until all is quiet.
    pub async fn until_heard(
        &mut self,
        kinds: &[&'static str],
        limit: Duration,
        quiet: Duration,
    ) -> Result<Heard> {
        let mut missing: Vec<BTreeSet<&str>> = vec![kinds.iter().copied().collect(); self.len()];
        let mut times = Vec::new();
        let streams = self.len();
        self.until(limit, quiet, |told| {
            if let Some(missing) = missing.get_mut(told.stream)
                && missing.remove(told.kind)
                && missing.is_empty()
            {
                times.push(told.at);
            }
            (times.len() == streams).then(|| times.clone())
        })
        .await
    }

    /// Listens until `done` gives the moments at which the streams were done, and then until all is quiet.
    async fn until(
        &mut self,
        limit: Duration,
        quiet: Duration,
        mut done: impl FnMut(&Told) -> Option<Vec<Instant>>,
    ) -> Result<Heard> {
        let begun = Instant::now();
        let (mut bytes, mut times, mut last) = (0, None, begun);
        while begun.elapsed() < limit {
            match timeout(quiet, self.heard.recv()).await {
                Ok(told) => {
                    let told = told.context("all streams are gone")?;
                    bytes += told.bytes;
                    last = last.max(told.at);
                    if times.is_none() {
                        times = done(&told);
                    }
                }
                Err(_) => {
                    if let Some(mut times) = times {
                        times.sort();
                        let p99 = times.get((times.len() * 99).div_ceil(100).saturating_sub(1));
                        let p99 = *p99.context("there are no streams")?;
                        let bytes = in_bytes(bytes);
                        return Ok(Heard { p99, last, bytes });
                    }
                }
            }
        }
        self.must_run()?;
        bail!("not all streams had it within {limit:?}")
    }
}

/// A number of bytes to compute with, in whole KiB.
pub fn in_bytes(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) * 1024.0
}

/// What a stream holds while it runs; put back when it ends or is cut off, as an Envoy keeps it.
struct Keep {
    slot: Arc<Mutex<Held>>,
    held: Held,
}

impl Keep {
    fn take(slot: Arc<Mutex<Held>>) -> Self {
        let held = std::mem::take(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner));
        Self { slot, held }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }
}
