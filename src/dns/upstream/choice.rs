//! Which upstream is asked: the one that answers, and of those the quickest.

use std::time::{Duration, Instant};

/// So many tries in a row without an answer make an upstream count as away.
const AWAY_AFTER: u32 = 2;
/// How long an upstream may go unasked before one query is sent to it too, to see how it does.
const PROBE_AFTER: Duration = Duration::from_secs(5);
/// The same of one that is away.
const PROBE_AWAY_AFTER: Duration = Duration::from_secs(1);
/// What counts for an upstream that was never asked: optimism, so that it soon is.
const UNKNOWN: Duration = Duration::ZERO;
/// The share of a new sample in the smoothed latency, one in so many.
const SMOOTHING: u32 = 8;

/// What is known of one upstream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    /// Smoothed latency of its answers.
    latency: Option<Duration>,
    /// Tries in a row that brought no answer.
    failures: u32,
    /// When it was last asked.
    asked: Option<Instant>,
}

impl Standing {
    /// It is being asked.
    pub fn asks(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// It answered within this time, whatever the answer.
    pub fn answered(&mut self, took: Duration) {
        self.failures = 0;
        self.latency = Some(match self.latency {
            None => took,
            Some(before) => (before * (SMOOTHING - 1) + took) / SMOOTHING,
        });
    }

    /// It did not answer in time, or cannot be reached.
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether it counts as away.
    pub fn is_away(&self) -> bool {
        self.failures >= AWAY_AFTER
    }

    fn is_due(&self, now: Instant) -> bool {
        let after = if self.is_away() { PROBE_AWAY_AFTER } else { PROBE_AFTER };
        self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= after)
    }
}

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// All of them, the best first: what answers before what is away, then the quickest. Equals
    /// keep the order in which they were configured.
    pub order: Vec<usize>,
    /// One that was not asked for a while, and is asked beside the first.
    pub probe: Option<usize>,
}

/// Decides whom to ask at this time.
pub fn choose(all: &[Standing], now: Instant) -> Choice {
    let mut order: Vec<(bool, Duration, usize)> = all
        .iter()
        .enumerate()
        .map(|(index, one)| (one.is_away(), one.latency.unwrap_or(UNKNOWN), index))
        .collect();
    order.sort();
    let order: Vec<usize> = order.into_iter().map(|(.., index)| index).collect();
    let due = |index: &usize| all.get(*index).is_some_and(|one| one.is_due(now));
    let probe = order.iter().skip(1).copied().find(due);
    Choice { order, probe }
}

/// Whether all of them are away.
pub fn all_away(all: &[Standing]) -> bool {
    all.iter().all(Standing::is_away)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn standing(millis: u64, failures: u32, asked: Instant) -> Standing {
        let latency = Some(Duration::from_millis(millis));
        Standing { latency, failures, asked: Some(asked) }
    }

    #[test]
    fn what_answers_comes_first_and_then_what_is_quick() {
        let now = Instant::now();
        let all = [
            standing(1, 2, now),
            standing(9, 0, now),
            standing(3, 1, now),
            standing(3, 0, now),
            standing(2, 9, now),
        ];
        assert_eq!(choose(&all, now), Choice { order: vec![2, 3, 1, 0, 4], probe: None });
        assert!(!all_away(&all));
        assert!(all_away(&[all[0], all[4]]));
    }

    #[test]
    fn one_that_was_never_asked_is_asked_soon() {
        let now = Instant::now();
        let all = [standing(1, 0, now), Standing::default()];
        assert_eq!(choose(&all, now).order, [1, 0]);
        assert_eq!(choose(&[Standing::default(); 3], now).order, [0, 1, 2]);
    }

    #[test]
    fn the_others_are_probed_now_and_then_and_those_away_sooner() {
        let start = Instant::now();
        let all = [standing(1, 0, start), standing(5, 0, start), standing(1, 2, start)];
        let at = |after: u64| choose(&all, start + Duration::from_millis(after)).probe;
        assert_eq!((at(999), at(1000), at(4999), at(5000)), (None, Some(2), Some(2), Some(1)));
    }

    #[test]
    fn two_failures_in_a_row_are_an_absence_and_one_answer_ends_it() {
        let mut one = Standing::default();
        one.failed();
        assert!(!one.is_away());
        one.failed();
        assert!(one.is_away());
        one.answered(Duration::from_millis(8));
        assert!(!one.is_away());
        one.answered(Duration::from_millis(16));
        assert_eq!(one.latency, Some(Duration::from_millis(9)));
        one.failed();
        assert!(!one.is_away(), "the count starts anew");
    }
}
