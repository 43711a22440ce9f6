//! One type on one stream: what is subscribed, and how far the client is behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::digest::Digest;
use super::flight::{Flight, Flights};
use super::names::Names;
use super::owed::{Has, Owed, Why};
use super::request::Protocol;
use super::retry::Retries;
use super::{Batch, Kind, Resource, View};

/// Whether everything is wanted, and since which words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// Only what is named.
    No,
    /// By never having named a resource.
    Legacy,
    /// By the name `*`.
    Explicit,
}

/// What is sent of a type in one go.
#[derive(Debug)]
pub(super) struct Bundle {
    /// The resources.
    pub(super) resources: Batch,
    /// Those of them that the client does not have in this form.
    pub(super) news: Batch,
    /// Names that are gone.
    pub(super) removed: Arc<[Arc<str>]>,
    /// Route configurations that the client did not have, or asked for again.
    pub(super) joined: Vec<Arc<str>>,
}

/// A subscription to one type. It remembers the newest view and, by name, where the client's state
/// differs from it; so a client that is up to date costs next to nothing.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) kind: Kind,
    pub(super) protocol: Protocol,
    pub(super) wildcard: Wildcard,
    pub(super) named: Names,
    pub(super) view: View,
    /// The client has nothing of what is wanted: all of it is owed, unlisted. Where it is wanted by
    /// name, the client asked for it.
    pub(super) blank: bool,
    pub(super) owed: BTreeMap<Arc<str>, Owed>,
    /// Clusters as the client has them, of those that changed or are gone since. One that is gone
    /// stays until nothing names it any more.
    pub(super) kept: BTreeMap<Arc<str>, Resource>,
    /// A response is due even if there is nothing to say in it.
    pub(super) answer: bool,
    /// Something was asked for whose content had changed as well: what was refused goes with it.
    pub(super) renewed: bool,
    pub(super) flights: Flights,
    /// What was refused and goes again by and by.
    pub(super) retries: Retries,
    /// The client's words at its last refusal.
    pub(super) refusal: Option<String>,
}

impl Subscription {
    pub(super) fn new(kind: Kind, protocol: Protocol, view: &View) -> Self {
        Self {
            kind,
            protocol,
            wildcard: Wildcard::No,
            named: Names::default(),
            view: view.clone(),
            blank: false,
            owed: BTreeMap::new(),
            kept: BTreeMap::new(),
            answer: false,
            renewed: false,
            flights: Flights::default(),
            retries: Retries::default(),
            refusal: None,
        }
    }

    /// Whether a name is wanted.
    pub(super) fn covers(&self, name: &str) -> bool {
        self.wildcard != Wildcard::No || self.named.contains(name, self.kind, &self.view)
    }

    /// What the client has under a name that is wanted.
    pub(super) fn has(&self, name: &str) -> Has {
        match self.owed.get(name) {
            Some(owed) => owed.has,
            None if self.blank => Has::Nothing,
            None => self.view.version(self.kind, name).map_or(Has::Nothing, Has::Version),
        }
    }

    /// The digest of the names that are wanted.
    pub(super) fn wanted(&self) -> Digest {
        match self.wildcard {
            Wildcard::No => self.named.digest(self.kind, &self.view),
            _ => self.view.names_digest(self.kind),
        }
    }

    /// All that is there of what is wanted.
    pub(super) fn covered(&self) -> Batch {
        if self.wildcard != Wildcard::No || self.named.whole() {
            return self.view.batch(self.kind);
        }
        let names = self.named.all(self.kind, &self.view);
        let there: Vec<_> =
            names.iter().filter_map(|name| self.view.get(self.kind, name)).collect();
        there.into()
    }

    /// Makes a name due, whether or not the client has it.
    pub(super) fn ask(&mut self, name: Arc<str>, has: Has) {
        let now = self.view.get(self.kind, &name);
        let before = self.owed.insert(name, Owed { has, now, why: Why::Asked });
        self.renewed |= before.as_ref().is_some_and(Owed::changed);
    }

    /// Takes in a newer view. The work is proportional to what changed, as far as the snapshot
    /// remembers it.
    pub(super) fn refresh(&mut self, view: &View) {
        let old = std::mem::replace(&mut self.view, view.clone());
        let changed =
            view.same_shape(&old).then(|| view.changed_since(self.kind, old.generation()));
        let changed = changed.flatten();
        self.named.follow(self.kind, &old, view, changed.as_ref());
        if self.blank {
            // Everything is owed already, listed or not.
            for (name, owed) in &mut self.owed {
                owed.now = view.get(self.kind, name);
            }
            return;
        }
        let candidates = match changed {
            Some(changed) => changed.into_iter().filter(|name| self.covers(name)).collect(),
            None => self.candidates(&old),
        };
        for name in candidates {
            let version = view.version(self.kind, &name);
            let entry = self.owed.get(&name);
            let before = old.version(self.kind, &name);
            if entry.is_none() && before == version {
                continue;
            }
            let same =
                entry.is_some_and(|owed| owed.now.as_ref().map(Resource::version) == version);
            let (has, why) = match entry {
                Some(owed) if same => (owed.has, owed.why),
                Some(Owed { has, why: Why::Refused, .. }) => (*has, Why::Differs),
                Some(owed) => (owed.has, owed.why),
                None => (before.map_or(Has::Nothing, Has::Version), Why::Differs),
            };
            let now = version.and_then(|_| view.get(self.kind, &name));
            self.keep(&name, now.as_ref(), has, &old);
            let owed = Owed { has, now, why };
            if owed.settled() {
                self.owed.remove(&name);
            } else {
                self.owed.insert(name, owed);
            }
        }
    }

    /// A whole-state response must go on listing a cluster whose removal has to wait, in the form
    /// that the client has: it may have missed later ones, and a changed cluster without endpoints,
    /// which are gone too, would not get warm (statement 20).
    fn keep(&mut self, name: &Arc<str>, now: Option<&Resource>, has: Has, old: &View) {
        if self.protocol != Protocol::Sotw || self.kind != Kind::Cluster {
            return;
        }
        let held = |form: &Resource| has == Has::Version(form.version());
        if now.is_some_and(held) {
            self.kept.remove(name);
        } else if has != Has::Nothing
            && !self.kept.contains_key(name)
            && let Some(last) = old.get(self.kind, name)
            && (now.is_none() || held(&last))
        {
            self.kept.insert(name.clone(), last);
        }
    }

    /// The wanted names, all of them, that the client may have or is to get.
    fn candidates(&self, old: &View) -> BTreeSet<Arc<str>> {
        let mut names = self.named.all(self.kind, &self.view);
        names.extend(self.owed.keys().cloned());
        if self.wildcard != Wildcard::No {
            names.append(&mut self.view.names(self.kind));
            names.append(&mut old.names(self.kind));
        }
        names
    }

    /// Takes back what a refused response brought: it counts as not delivered, and goes again when
    /// something of this type changes (statement 6), which it did where another response followed.
    pub(super) fn refuse(&mut self, flight: &Flight, words: String) {
        self.refusal = Some(words);
        let last = flight.nonce() == self.flights.last();
        let why = if last { Why::Refused } else { Why::Differs };
        for resource in flight.resources.iter() {
            self.doubt(resource.name(), Has::Version(resource.version()), why);
        }
        for name in flight.removed.iter() {
            self.doubt(name, Has::Nothing, why);
        }
    }

    fn doubt(&mut self, name: &Arc<str>, sent: Has, why: Why) {
        if !self.covers(name) || self.has(name) != sent {
            return;
        }
        if let Some(owed) = self.owed.get_mut(name) {
            owed.has = Has::Unsure;
        } else {
            let now = self.view.get(self.kind, name);
            self.owed.insert(name.clone(), Owed { has: Has::Unsure, now, why });
        }
    }

    /// Whether something is to be sent now, when removals may be or not. What the client asked for
    /// goes at once; a change waits for the answer to the last response, for a time.
    pub(super) fn ready(&self, removals: bool, now: Instant) -> bool {
        let mut due = self.owed.values().filter(|owed| owed.due(self.kind, removals));
        let patient = self.flights.waiting(now) && !self.stuck(now);
        self.answers() || self.blank || due.any(|owed| !patient || owed.why == Why::Asked)
    }

    /// Whether the answer that is waited for needs a cluster that is gone again.
    fn stuck(&self, now: Instant) -> bool {
        let gone = |name: &str| self.owed.get(name).is_some_and(Owed::removal);
        self.kind == Kind::Cluster && self.removing() && self.flights.overdue(now, gone)
    }

    /// Whether a response is due even if it is empty. An empty one in place of virtual hosts that
    /// are parked would let a listener open without any.
    fn answers(&self) -> bool {
        self.answer && !self.owed.values().any(|owed| owed.why == Why::Parked)
    }

    /// Whether something is still to be sent, now or later.
    pub(super) fn pending(&self) -> bool {
        self.answers() || self.blank || self.owed.values().any(|owed| owed.due(self.kind, true))
    }

    /// Whether the client lacks something that others may name.
    pub(super) fn lacking(&self) -> bool {
        self.blank || self.owed.values().any(Owed::lacking)
    }

    /// Whether removals wait.
    pub(super) fn removing(&self) -> bool {
        self.owed.values().any(Owed::removal)
    }

    /// Whether the client accepted all that it should have.
    pub(super) fn accepted(&self, now: Instant) -> bool {
        let left = || self.owed.values().any(|o| matches!(o.why, Why::Refused | Why::Leaving));
        !self.pending() && !left() && !self.kept_whole() && !self.flights.waiting(now)
    }

    /// Whether the client refused the whole state, so that it may still have what is absent there.
    fn kept_whole(&self) -> bool {
        let named = || !self.named.is_empty(self.kind, &self.view);
        let wants = self.wildcard != Wildcard::No || named();
        let whole = self.protocol == Protocol::Sotw && self.kind.whole_state();
        whole && wants && self.refusal.is_some()
    }

    /// Whether the client was sent a resource in some form.
    pub(super) fn delivered(&self, name: &str) -> bool {
        self.covers(name) && self.has(name) != Has::Nothing
    }
}
