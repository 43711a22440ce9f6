//! Which kinds are in trouble and since when, and what of it is worth a line in the log. Pure: the
//! time is given.
//!
//! A watch that is cut and goes on at once is an ordinary event. What lasts longer than a moment is
//! said, once when it begins and once when it is over, however many requests fail meanwhile and
//! however many kinds they were for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::kinds::resource;
use super::trouble::{Cause, Trouble};
use crate::index::ObjectKind;

/// How long trouble lasts before it is said.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// The trouble of each kind.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The API server's address, for words.
    server: String,
    troubles: BTreeMap<ObjectKind, (Trouble, Instant)>,
    /// What was said, and since when it was so.
    said: BTreeMap<Cause, Instant>,
    /// The kinds that no complete list was had of.
    missing: Vec<ObjectKind>,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Trouble has begun.
    Began(String),
    /// It is over.
    Over(String),
}

impl Ledger {
    /// Nothing is listed yet.
    pub(super) fn new(server: &str, missing: Vec<ObjectKind>) -> Self {
        let (troubles, said) = (BTreeMap::new(), BTreeMap::new());
        Self { server: server.to_owned(), troubles, said, missing }
    }

    /// A kind is in trouble.
    pub(super) fn trouble(&mut self, kind: ObjectKind, trouble: Trouble, now: Instant) {
        let same = self.troubles.get(&kind).filter(|(old, _)| old.cause == trouble.cause);
        let since = same.map_or(now, |(_, since)| *since);
        self.troubles.insert(kind, (trouble, since));
    }

    /// The API server answered a request for a kind as it should.
    pub(super) fn answered(&mut self, kind: ObjectKind) {
        self.troubles.remove(&kind);
    }

    /// The kinds that still miss a complete list.
    pub(super) fn missing(&mut self, missing: Vec<ObjectKind>) {
        self.missing = missing;
    }

    /// When something may have to be said, unless something happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let unsaid = self.troubles.values().filter(|(t, _)| !self.said.contains_key(&t.cause));
        unsaid.map(|(_, since)| *since + MOMENT).min()
    }

    /// What is to be said now.
    pub(super) fn lines(&mut self, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        for (trouble, since) in self.troubles.values() {
            if now.duration_since(*since) >= MOMENT && !self.said.contains_key(&trouble.cause) {
                self.said.insert(trouble.cause, *since);
                lines.push(Line::Began(trouble.told(&self.server).to_string()));
            }
        }
        let troubles = &self.troubles;
        let server = &self.server;
        self.said.retain(|cause, since| {
            let lasts = troubles.values().any(|(trouble, _)| trouble.cause == *cause);
            if !lasts {
                let lasted = now.duration_since(*since).as_secs_f64();
                lines.push(Line::Over(format!("{}, after {lasted:.1} s", over(*cause, server))));
            }
            lasts
        });
        lines
    }

    /// What stands in the way of a first complete state; `None` once there is one.
    pub(super) fn waiting(&self) -> Option<String> {
        if self.missing.is_empty() {
            return None;
        }
        let kinds: Vec<_> = self.missing.iter().map(|kind| resource(*kind).1).collect();
        let lists = format!("no complete list yet of {}", kinds.join(", "));
        let troubles = self.words(|_| true);
        Some(if troubles.is_empty() { lists } else { format!("{troubles}; {lists}") })
    }

    /// What is amiss though there is a state; `None` where all is well.
    pub(super) fn degraded(&self) -> Option<String> {
        let words = self.words(|cause| self.said.contains_key(&cause));
        (!words.is_empty()).then(|| format!("{words}; what was known last is served meanwhile"))
    }

    /// The causes there are, each once.
    pub(super) fn causes(&self) -> Vec<Cause> {
        let mut causes: Vec<_> = self.troubles.values().map(|(trouble, _)| trouble.cause).collect();
        causes.sort_unstable();
        causes.dedup();
        causes
    }

    fn words(&self, tell: impl Fn(Cause) -> bool) -> String {
        let causes = self.causes().into_iter().filter(|cause| tell(*cause));
        let words = causes.filter_map(|cause| {
            let mut troubles = self.troubles.values();
            let (trouble, _) = troubles.find(|(trouble, _)| trouble.cause == cause)?;
            Some(trouble.told(&self.server).to_string())
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

/// That a cause is no more.
fn over(cause: Cause, server: &str) -> String {
    match cause {
        Cause::Forbidden { verb, kind } => {
            let (group, resource) = resource(kind);
            format!("we may {verb} {resource} of the API group {group:?} again")
        }
        Cause::Unauthorized => format!("the API server at {server} accepts our credentials again"),
        Cause::Unreachable => format!("the API server at {server} is reached again"),
        Cause::Refused(code) => format!("the API server at {server} no longer answers with {code}"),
        Cause::Unreadable => format!("the API server at {server} is understood again"),
    }
}

#[cfg(test)]
mod tests;
