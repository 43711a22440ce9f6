//! How much one client may ask: off unless it is set.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How many clients are told apart at a time. Beyond it the counts start anew, in favour of all.
const CLIENTS: usize = 65_536;

/// A bucket of tokens for each client address: one for a query, a second's worth at most.
#[derive(Debug)]
pub struct Limit {
    per_second: Option<NonZeroU32>,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Limit {
    /// So many queries a second from one address; `None`: any number.
    pub fn new(per_second: Option<NonZeroU32>) -> Self {
        Self { per_second, buckets: Mutex::default() }
    }

    /// Whether a client may ask now.
    pub fn allows(&self, client: IpAddr, now: Instant) -> bool {
        let Some(rate) = self.per_second else { return true };
        let rate = f64::from(rate.get());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CLIENTS && !buckets.contains_key(&client) {
            buckets.clear();
        }
        let bucket = buckets.entry(client).or_insert(Bucket { tokens: rate, filled: now });
        let since = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + since * rate).min(rate);
        bucket.filled = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_gets_its_rate_and_no_more_and_no_other_pays_for_it() {
        let (limit, start) = (Limit::new(NonZeroU32::new(10)), Instant::now());
        let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let count = |client, at| (0..100).filter(|_| limit.allows(client, at)).count();
        assert_eq!(count(one, start), 10);
        assert_eq!(count(other, start), 10);
        assert_eq!(count(one, start + Duration::from_millis(99)), 0);
        assert_eq!(count(one, start + Duration::from_millis(500)), 5);
        assert_eq!(count(one, start + Duration::from_mins(1)), 10, "no more than a second's worth");
    }

    #[test]
    fn without_a_rate_all_may_ask_and_nothing_is_kept() {
        let limit = Limit::new(None);
        assert!((0..1000).all(|_| limit.allows("10.0.0.1".parse().unwrap(), Instant::now())));
        assert!(limit.buckets.lock().unwrap().is_empty());
    }

    #[test]
    fn the_memory_is_bounded() {
        let (limit, now) = (Limit::new(NonZeroU32::new(1)), Instant::now());
        for n in 0..70_000_u32 {
            limit.allows(IpAddr::from(n.to_be_bytes()), now);
        }
        assert!(limit.buckets.lock().unwrap().len() <= CLIENTS);
    }
}
