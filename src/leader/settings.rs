//! How long things take in an election.

use std::time::Duration;

/// The shortest time by which the lease duration must exceed the renew deadline: in it, what a
/// leader sent at its last moment arrives.
const MARGIN: Duration = Duration::from_secs(1);

/// Durations that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongDurations {
    /// The Lease holds whole seconds.
    #[error(
        "the lease duration {0:?} is not a whole number of seconds from 1 to {most}: write one, such as 15s",
        most = Settings::LONGEST.as_secs()
    )]
    Duration(Duration),
    /// A candidate might write while the old leader still does.
    #[error(
        "the renew deadline {deadline:?} is not at least {MARGIN:?} shorter than the lease duration {duration:?}: \
         a candidate could lead while the old leader still writes; raise --lease-duration or lower \
         --lease-renew-deadline"
    )]
    Deadline {
        /// The lease duration.
        duration: Duration,
        /// The renew deadline.
        deadline: Duration,
    },
    /// One slow answer would cost the leadership.
    #[error(
        "the renew interval {interval:?} is zero, or more than half of the renew deadline {deadline:?}: one lost \
         answer would cost the leadership; lower --lease-renew-interval"
    )]
    Interval {
        /// The renew interval.
        interval: Duration,
        /// The renew deadline.
        deadline: Duration,
    },
}

/// The durations of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a candidate sees one record unchanged before it takes over.
    pub duration: Duration,
    /// How long a leader leads after it sent the last renewal that was stored.
    pub deadline: Duration,
    /// How long after it sent one renewal a leader sends the next.
    pub interval: Duration,
}

impl Settings {
    /// The longest lease duration. What another's record says beyond it is cut to it, so that a
    /// number that somebody mistyped does not leave the mesh without a leader for ever.
    pub const LONGEST: Duration = Duration::from_secs(600);

    /// Checks durations against each other.
    pub fn new(
        duration: Duration,
        deadline: Duration,
        interval: Duration,
    ) -> Result<Self, WrongDurations> {
        let seconds = duration.subsec_nanos() == 0 && !duration.is_zero();
        if !seconds || duration > Self::LONGEST {
            return Err(WrongDurations::Duration(duration));
        }
        if deadline.saturating_add(MARGIN) > duration {
            return Err(WrongDurations::Deadline { duration, deadline });
        }
        if interval.is_zero() || interval.saturating_mul(2) > deadline {
            return Err(WrongDurations::Interval { interval, deadline });
        }
        Ok(Self { duration, deadline, interval })
    }

    /// How long one request may take: an answer that is lost must leave time for more attempts
    /// before the deadline.
    pub fn attempt(&self) -> Duration {
        self.deadline / 3
    }
}

impl Default for Settings {
    /// 15 s, 10 s and 2 s, as the controllers of Kubernetes have it.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            interval: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn durations_are_checked_from_both_sides() {
        let good = [(15000, 10000, 2000), (15000, 14000, 7000), (600_000, 1, 1), (2000, 1000, 500)];
        for (duration, deadline, interval) in good {
            let interval = interval.min(deadline / 2).max(1);
            let settings = Settings::new(ms(duration), ms(deadline.max(2)), ms(interval));
            assert!(settings.is_ok(), "{settings:?}");
        }
        let wrong = |a, b, c| Settings::new(ms(a), ms(b), ms(c)).unwrap_err();
        assert_eq!(wrong(1500, 400, 200), WrongDurations::Duration(ms(1500)));
        assert_eq!(wrong(0, 0, 0), WrongDurations::Duration(ms(0)));
        assert_eq!(wrong(601_000, 4, 2), WrongDurations::Duration(ms(601_000)));
        let deadline = WrongDurations::Deadline { duration: ms(15000), deadline: ms(14001) };
        assert_eq!(wrong(15000, 14001, 2000), deadline);
        for interval in [0, 5001] {
            let error = WrongDurations::Interval { interval: ms(interval), deadline: ms(10000) };
            assert_eq!(wrong(15000, 10000, interval), error);
        }
        let default = Settings::default();
        assert_eq!(
            Settings::new(default.duration, default.deadline, default.interval),
            Ok(default)
        );
    }
}
