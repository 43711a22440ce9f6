//! The one clock that leadership is judged by.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A time of `CLOCK_BOOTTIME`: what has passed since the machine started, the time that it slept
/// included. Meaningless on any other machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Boot(pub Duration);

impl Boot {
    /// A time that never comes.
    pub const NEVER: Self = Self(Duration::MAX);

    /// How long after `earlier` this is; zero where it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Boot {
    type Output = Self;

    fn add(self, more: Duration) -> Self {
        Self(self.0.saturating_add(more))
    }
}

/// Reads the clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Boot + Send + Sync>);

impl Clock {
    /// `CLOCK_BOOTTIME` of this machine.
    pub fn boot() -> Self {
        Self::new(|| {
            let time = clock_gettime(ClockId::Boottime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
            Boot(Duration::new(seconds, nanos))
        })
    }

    /// Any other source of time, as a test needs it.
    pub fn new(read: impl Fn() -> Boot + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// What time it is.
    pub fn now(&self) -> Boot {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_on_and_never_overflows() {
        let clock = Clock::boot();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(3));
        let passed = clock.now().since(before);
        assert!(passed >= Duration::from_millis(3), "{passed:?}");
        assert_eq!(before.since(clock.now()), Duration::ZERO);
        assert_eq!(Boot::NEVER + Duration::from_secs(1), Boot::NEVER);
    }
}
