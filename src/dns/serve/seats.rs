//! How many TCP connections there may be, in all and of one client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In all.
const SEATS: usize = 1024;
/// Of one client address.
const SEATS_OF_ONE: usize = 128;
/// More than this is a crowd, in which nobody may sit idle for long.
const CROWD: usize = SEATS / 2;

/// The seats that are taken.
#[derive(Debug, Default)]
pub struct Seats {
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
    /// A seat for a client, if there is one.
    pub fn take(self: &Arc<Self>, client: IpAddr) -> Option<Seat> {
        let mut taken = self.taken();
        let of_one = taken.of.get(&client).copied().unwrap_or_default();
        if taken.all >= SEATS || of_one >= SEATS_OF_ONE {
            return None;
        }
        taken.all += 1;
        taken.of.insert(client, of_one + 1);
        Some(Seat { seats: self.clone(), client })
    }

    /// Whether many are taken.
    pub fn crowded(&self) -> bool {
        self.taken().all > CROWD
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
        let seats = Arc::new(Seats::default());
        let of = |n: u8| IpAddr::from([10, 0, 0, n]);
        let one: Vec<_> = std::iter::from_fn(|| seats.take(of(1))).collect();
        assert_eq!(one.len(), SEATS_OF_ONE);
        assert!(!seats.crowded());
        let others: Vec<_> = (2..=9)
            .flat_map(|n| std::iter::from_fn(move || Some(n)).take(200))
            .filter_map(|n| seats.take(of(n)))
            .collect();
        assert_eq!(one.len() + others.len(), SEATS);
        assert!(seats.crowded() && seats.take(of(100)).is_none());
        drop(one);
        assert!(seats.take(of(100)).is_some() && seats.take(of(1)).is_some());
        drop(others);
        assert!(!seats.crowded() && seats.taken().of.is_empty(), "{:?}", seats.taken());
    }
}
