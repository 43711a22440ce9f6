//! The end of a connection's streams.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Why a connection ends that nobody complains of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The server is told to stop.
    Shutdown,
    /// It has its age, or its peer's certificate has.
    Age,
}

/// Tells the streams of a connection to end. All clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Leave {
    token: CancellationToken,
    why: Arc<OnceLock<Why>>,
}

impl Leave {
    /// From now on, they end.
    pub(super) fn end(&self, why: Why) {
        let _ = self.why.set(why);
        self.token.cancel();
    }

    /// Waits until they are told to; the status that they end with.
    pub(super) async fn ended(&self) -> Status {
        self.token.cancelled().await;
        match self.why.get() {
            // No failure: a client connects anew at once, and says nothing of it.
            Some(Why::Age) => Status::ok("the connection has reached its age: connect anew"),
            Some(Why::Shutdown) | None => Status::unavailable("shutting down"),
        }
    }
}

/// A random number from 0 to 1. What is started at one moment shall not end at one.
fn chance() -> f64 {
    let random = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(random).unwrap_or_default()) / f64::from(u32::MAX)
}

/// A span, a tenth more or less.
pub(super) fn about(span: Duration) -> Duration {
    span.mul_f64(0.9 + 0.2 * chance())
}

/// Any moment of a span.
pub(super) fn within(span: Duration) -> Duration {
    span.mul_f64(chance())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spread_and_stay_inside() {
        let hour = Duration::from_hours(1);
        let ages: Vec<_> = (0..1000).map(|_| about(hour)).collect();
        assert!(ages.iter().all(|age| (hour * 9 / 10..=hour * 11 / 10).contains(age)));
        let (min, max) = (ages.iter().min(), ages.iter().max());
        assert!(min < Some(&(hour * 95 / 100)) && max > Some(&(hour * 105 / 100)));
        assert!((0..1000).all(|_| within(hour) <= hour));
        assert_eq!(within(Duration::ZERO), Duration::ZERO);
    }
}
