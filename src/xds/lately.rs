//! What was said lately is not said again: a peer that is refused comes back every few seconds.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long.
const LATELY: Duration = Duration::from_mins(1);
/// How many peers and reasons are remembered; beyond that everything is forgotten, and said again.
const MOST: usize = 4096;

/// What was said of whom.
#[derive(Debug, Default)]
pub(super) struct Lately(Mutex<HashMap<(Option<IpAddr>, String), Instant>>);

impl Lately {
    /// Whether these words are news. What stands in parentheses may differ each time.
    pub(super) fn is_news(&self, peer: Option<IpAddr>, words: &str, now: Instant) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= MOST {
            said.retain(|_, at| now.duration_since(*at) < LATELY);
            if said.len() >= MOST {
                said.clear();
            }
        }
        let gist = words.split(" (").next().unwrap_or(words);
        let key = (peer, gist.to_owned());
        if said.get(&key).is_some_and(|at| now.duration_since(*at) < LATELY) {
            return false;
        }
        said.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_peer_is_news_once_a_minute() {
        let (lately, now) = (Lately::default(), Instant::now());
        let peer = Some(IpAddr::from([10, 0, 0, 1]));
        assert!(lately.is_news(peer, "a (1)", now));
        assert!(!lately.is_news(peer, "a (2)", now + LATELY / 2));
        assert!(lately.is_news(peer, "b", now));
        assert!(lately.is_news(None, "a (1)", now));
        assert!(lately.is_news(peer, "a (1)", now + LATELY));
        for number in 0..2 * u32::try_from(MOST).unwrap_or_default() {
            lately.is_news(Some(IpAddr::from(number.to_be_bytes())), "c", now);
        }
        assert!(lately.0.lock().is_ok_and(|said| said.len() <= MOST));
    }
}
