//! What the server takes at once: requests, and bytes of their bodies.

use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use std::sync::Arc;

/// The limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest body, in bytes. An API server keeps no object above 1.5 MiB in etcd, and writes
    /// `<`, `>` and `&` in its reviews in six bytes each.
    pub body: usize,
    /// The bytes of all bodies that are read or answered at one time.
    pub memory: usize,
    /// The requests that are answered at one time; more wait.
    pub requests: usize,
    /// How long a request may take in all, waiting included. Less than the five seconds that the
    /// API server waits, so that it learns why.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 10 << 20, memory: 64 << 20, requests: 256, time: Duration::from_millis(4500) }
    }
}

/// The room that is left.
#[derive(Debug)]
pub struct Room {
    requests: Arc<Semaphore>,
    kibibytes: Arc<Semaphore>,
    most: u32,
}

/// The room that a request takes, for as long as the value lives.
#[derive(Debug)]
pub struct Taken(#[allow(dead_code)] [OwnedSemaphorePermit; 2]);

impl Room {
    /// All of it.
    pub fn new(limits: &Limits) -> Self {
        // A body at the limit must always find room, if it waits for it.
        let memory = limits.memory.max(limits.body);
        Self {
            requests: Arc::new(Semaphore::new(limits.requests.max(1))),
            kibibytes: Arc::new(Semaphore::new(kibibytes(memory) as usize)),
            most: kibibytes(limits.body),
        }
    }

    /// Waits for room for a body of `length` bytes; of one that says no length, for the largest.
    /// `None` never happens: nobody closes the room.
    pub async fn take(&self, length: Option<usize>) -> Option<Taken> {
        let kib = length.map_or(self.most, |length| kibibytes(length).min(self.most));
        let request = self.requests.clone().acquire_owned().await.ok()?;
        let bytes = self.kibibytes.clone().acquire_many_owned(kib).await.ok()?;
        Some(Taken([request, bytes]))
    }
}

fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}
