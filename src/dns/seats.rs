//! How much of something there may be at a time, in all and of one client: connections, questions
//! under way, clients that wait. One that takes all it may leaves room for the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The share of one client address, one in so many.
const SHARE: usize = 8;

/// The seats that are taken.
#[derive(Debug)]
pub struct Seats {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// One seat, free again when it is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    client: IpAddr,
}

impl Seats {
    /// So many in all, and an eighth of them for one client.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A seat for a client, if there is one.
    pub fn take(self: &Arc<Self>, client: IpAddr) -> Option<Seat> {
        let mut taken = self.taken();
        let of_one = taken.of.get(&client).copied().unwrap_or_default();
        if taken.all >= self.most || of_one >= self.most / SHARE {
            return None;
        }
        taken.all += 1;
        taken.of.insert(client, of_one + 1);
        Some(Seat { seats: self.clone(), client })
    }

    /// Whether more than half are taken.
    pub fn crowded(&self) -> bool {
        self.taken().all > self.most / 2
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.all = taken.all.saturating_sub(1);
        if let Some(count) = taken.of.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn one_client_cannot_take_all_seats_and_all_together_no_more_than_there_are() {
        let seats = Seats::new(1024);
        let of = |n: u8| IpAddr::from([10, 0, 0, n]);
        let one: Vec<_> = std::iter::from_fn(|| seats.take(of(1))).collect();
        assert_eq!(one.len(), 128);
        assert!(!seats.crowded());
        let others: Vec<_> = (2..=9)
            .flat_map(|n| std::iter::from_fn(move || Some(n)).take(200))
            .filter_map(|n| seats.take(of(n)))
            .collect();
        assert_eq!(one.len() + others.len(), 1024);
        assert!(seats.crowded() && seats.take(of(100)).is_none());
        drop(one);
        assert!(seats.take(of(100)).is_some() && seats.take(of(1)).is_some());
        drop(others);
        assert!(!seats.crowded() && seats.taken().of.is_empty(), "{:?}", seats.taken());
    }
}
