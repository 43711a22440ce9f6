//! The state-of-the-world protocol: requests say all that is wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::names::Names;
use super::owed::{Has, Owed, Why};
use super::request::Protocol;
use super::subscription::{Bundle, Subscription, Wildcard};
use super::{Batch, Kind, Resource, View, Words};

impl Subscription {
    /// The first request for a type.
    pub(super) fn first_sotw(kind: Kind, view: &View, words: &Words) -> Self {
        let mut this = Self::new(kind, Protocol::Sotw, view);
        this.wildcard = match () {
            () if words.star() => Wildcard::Explicit,
            () if words.is_empty() && kind.wildcard_by_default() => Wildcard::Legacy,
            () => Wildcard::No,
        };
        this.named = Names::read(words, kind, view);
        let wild = this.wildcard != Wildcard::No;
        this.blank = wild || !this.named.is_empty(kind, view);
        // Where a response holds the whole state, absence is an answer, and asked for.
        this.answer = wild || kind.whole_state() && this.blank;
        this
    }

    /// The names of a later request that is not stale.
    pub(super) fn name_sotw(&mut self, words: &Words) {
        let wildcard = match self.wildcard {
            _ if words.star() => Wildcard::Explicit,
            Wildcard::Legacy if words.is_empty() => Wildcard::Legacy,
            _ => Wildcard::No,
        };
        let (kind, view) = (self.kind, &self.view);
        let digest = words.digest();
        // An acknowledgement repeats the names. An Envoy that learns of a cluster adds its
        // assignment, and then names all there are.
        let same = digest == self.named.digest(kind, view);
        let added = if same && wildcard == self.wildcard {
            return;
        } else if same {
            BTreeSet::new()
        } else if wildcard == self.wildcard && Some(digest) == self.named.completed(kind, view) {
            self.named.complete()
        } else {
            let after = Names::read(words, kind, view);
            let before = std::mem::replace(&mut self.named, after).all(kind, view);
            let mut added = self.named.all(kind, view);
            // What is dropped is forgotten, so that subscribing again sends again (statement 8).
            for name in before {
                if !added.remove(&name) && wildcard == Wildcard::No {
                    self.owed.remove(&name);
                    self.kept.remove(&name);
                }
            }
            added
        };
        let added: Vec<_> =
            added.into_iter().map(|name| (self.has_if_covered(&name), name)).collect();
        match (self.wildcard, wildcard) {
            (Wildcard::No, Wildcard::No) => {}
            (_, Wildcard::No) => self.end_wildcard(),
            (Wildcard::No, _) => {
                self.begin_wildcard();
                self.wildcard = wildcard;
            }
            _ => self.wildcard = wildcard,
        }
        // Where a response holds the whole state, absence is an answer, and asked for.
        self.answer |= self.kind.whole_state() && !added.is_empty();
        for (has, name) in added {
            self.ask(name, has);
        }
    }

    fn has_if_covered(&self, name: &str) -> Has {
        if self.wildcard == Wildcard::No { Has::Nothing } else { self.has(name) }
    }

    /// All that is due in the state-of-the-world protocol, which from then on counts as sent.
    pub(super) fn take_sotw(&mut self, removals: bool) -> Option<Bundle> {
        if self.kind.whole_state() { self.take_whole(removals) } else { self.take_changed() }
    }

    /// Everything that is wanted, as absence deletes.
    fn take_whole(&mut self, removals: bool) -> Option<Bundle> {
        let due = self.owed.values().any(|owed| owed.due(self.kind, removals));
        if !due && !self.blank && !self.answer {
            return None;
        }
        let mut resources = self.covered();
        let news: Batch = if self.blank {
            resources.clone()
        } else {
            self.owed.values().filter_map(|owed| owed.now.clone()).collect::<Vec<_>>().into()
        };
        let owed = &self.owed;
        self.kept.retain(|name, _| !removals && owed.get(name).is_some_and(Owed::removal));
        if !self.kept.is_empty() {
            let all = resources.iter().chain(self.kept.values());
            resources = all.cloned().collect::<Vec<_>>().into();
        }
        self.owed.retain(|_, owed| owed.removal() && !removals);
        self.blank = false;
        self.answer = false;
        Some(Bundle { resources, news, removed: Arc::default(), joined: Vec::new() })
    }

    /// What changed, as absence deletes nothing.
    fn take_changed(&mut self) -> Option<Bundle> {
        let resources = if std::mem::take(&mut self.blank) {
            self.owed.clear();
            self.covered()
        } else {
            let mut resources: Vec<Resource> = Vec::new();
            let renewed = std::mem::take(&mut self.renewed);
            let changed = renewed || self.owed.values().any(Owed::changed);
            self.owed.retain(|_, owed| {
                if owed.why == Why::Refused && !changed {
                    return true;
                }
                resources.extend(owed.now.clone());
                false
            });
            resources.into()
        };
        if resources.is_empty() && !std::mem::take(&mut self.answer) {
            return None;
        }
        self.answer = false;
        Some(Bundle {
            news: resources.clone(),
            resources,
            removed: Arc::default(),
            joined: Vec::new(),
        })
    }
}
