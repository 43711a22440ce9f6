//! When the change came that a snapshot answers, for the newest snapshots.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How many snapshots back it is remembered. A stream that is further behind is not measured: it
/// is slow by its own choice.
const REMEMBERED: usize = 64;

/// The generations of the newest snapshots, each with the moment of the oldest change in it.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<(u64, Instant)>>);

impl Recent {
    /// Notes a snapshot.
    pub(super) fn note(&self, generation: u64, since: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.pop_front();
        }
        all.push_back((generation, since));
    }

    /// When the oldest of the changes came that are in `generation` and not in an `older` one.
    pub(super) fn since(&self, older: u64, generation: u64) -> Option<Instant> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = all.iter().filter(|(at, _)| (older + 1..=generation).contains(at));
        newer.map(|(_, since)| *since).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{REMEMBERED, Recent};

    #[test]
    fn the_oldest_change_of_those_that_a_stream_missed_counts() {
        let (recent, start) = (Recent::default(), Instant::now());
        let at = |n: u64| start + Duration::from_secs(n);
        for generation in 1..=4 {
            recent.note(generation, at(generation));
        }
        assert_eq!(recent.since(3, 4), Some(at(4)));
        assert_eq!(recent.since(1, 3), Some(at(2)));
        assert_eq!(recent.since(4, 4), None);
        for generation in 5..5 + REMEMBERED as u64 {
            recent.note(generation, at(generation));
        }
        assert_eq!(recent.since(0, 4), None, "it is forgotten");
    }
}
