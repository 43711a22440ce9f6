//! What was refused for a reason that may pass by itself, and when it goes again.
//!
//! That is for nodes whose listeners need something that comes on another way than ours, as a
//! network namespace does. Everything else that is refused goes again when it changes, and not
//! before (statement 6).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flight::Flight;
use super::owed::{Has, Why};
use super::subscription::Subscription;
use super::{Resource, View};

/// How long the first retry waits.
pub(super) const FIRST: Duration = Duration::from_secs(1);

/// How long a retry waits at most; each one doubles the wait.
pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// The resources of one type that were refused, by name.
#[derive(Debug, Default)]
pub(super) struct Retries(BTreeMap<Arc<str>, Retry>);

#[derive(Debug)]
struct Retry {
    wait: Duration,
    /// `None` while the answer to a retry is awaited.
    due: Option<Instant>,
}

impl Retries {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that a resource was refused.
    pub(super) fn refused(&mut self, name: &Arc<str>, now: Instant) {
        let wait = self.0.get(name).map_or(FIRST, |retry| LONGEST.min(retry.wait * 2));
        self.0.insert(name.clone(), Retry { wait, due: Some(now + wait) });
    }

    /// Forgets a resource. Tells whether it was the last one.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some() && self.0.is_empty()
    }

    /// The resources that are to go now.
    pub(super) fn take(&mut self, now: Instant) -> Vec<Arc<str>> {
        let due = self.0.iter_mut().filter(|(_, retry)| retry.due.is_some_and(|due| due <= now));
        due.map(|(name, retry)| {
            retry.due = None;
            name.clone()
        })
        .collect()
    }

    /// When the next one goes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|retry| retry.due).min()
    }
}

impl Subscription {
    /// Has what was refused go again after a while: those of the node's own that the client named,
    /// or all where it named none.
    pub(super) fn retry_later(
        &mut self,
        flight: &Flight,
        told: &[String],
        view: &View,
        now: Instant,
    ) {
        let own = flight.resources.iter().map(Resource::name);
        let own: Vec<_> = own.filter(|name| view.owns(self.kind, name)).collect();
        let named = |name: &Arc<str>| told.iter().any(|told| **told == **name);
        let culprits: Vec<_> = own.iter().copied().filter(|name| named(name)).collect();
        for name in if culprits.is_empty() { own } else { culprits } {
            self.retries.refused(name, now);
        }
    }

    /// Whether all of a response was refused before and went again for that reason alone.
    pub(super) fn is_retry(&self, flight: &Flight) -> bool {
        let known = |resource: &Resource| self.retries.0.contains_key(resource.name());
        !flight.resources.is_empty() && flight.resources.iter().all(known)
    }

    /// Makes due what has waited long enough, unless it went or changed meanwhile.
    pub(super) fn retry(&mut self, now: Instant) {
        for name in self.retries.take(now) {
            match self.owed.get(&name) {
                Some(owed) if owed.why == Why::Refused && owed.now.is_some() => {
                    self.ask(name, Has::Unsure);
                }
                Some(_) => {}
                None => {
                    self.retries.forget(&name);
                }
            }
        }
    }

    /// Notes what was accepted. With the last one that was at fault, what was refused beside it
    /// goes once more: the client may have taken it at once, but it did not say so.
    pub(super) fn relieved(&mut self, flight: &Flight) {
        if self.retries.is_empty() {
            return;
        }
        let mut over = false;
        for resource in flight.resources.iter() {
            over |= self.retries.forget(resource.name());
        }
        if over {
            let refused = self.owed.values_mut().filter(|owed| owed.why == Why::Refused);
            refused.for_each(|owed| owed.why = Why::Asked);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_minute_and_starts_anew_when_it_is_over() {
        let (name, now) = (Arc::from("a"), Instant::now());
        let mut retries = Retries::default();
        let mut at = now;
        let mut waits = Vec::new();
        for _ in 0..8 {
            retries.refused(&name, at);
            let due = retries.deadline().unwrap();
            waits.push((due - at).as_secs());
            assert!(retries.take(due.checked_sub(Duration::from_millis(1)).unwrap()).is_empty());
            assert_eq!(retries.take(due), std::slice::from_ref(&name));
            // Once, until it is refused again.
            assert!(retries.take(due).is_empty() && retries.deadline().is_none());
            at = due;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(retries.forget("a") && !retries.forget("a"));
        retries.refused(&name, at);
        assert_eq!(retries.deadline().unwrap() - at, FIRST);
    }
}
