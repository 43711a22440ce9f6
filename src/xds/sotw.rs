//! The state-of-the-world protocol: requests say all that is wanted.

use std::collections::HashSet;
use std::sync::Arc;

use super::Resource;
use super::owed::{Has, Owed, Why};
use super::subscription::{Bundle, Subscription, Wildcard};

impl Subscription {
    /// The names of a request, the first or a later one, that is not stale.
    pub(super) fn name_sotw(&mut self, names: &[String], first: bool) {
        let star = names.iter().any(|name| name == "*");
        let legacy = names.is_empty() && self.kind.wildcard_by_default();
        let wildcard = match self.wildcard {
            _ if star => Wildcard::Explicit,
            Wildcard::Legacy if names.is_empty() => Wildcard::Legacy,
            _ if first && legacy => Wildcard::Legacy,
            _ => Wildcard::No,
        };
        let plain = names.iter().filter(|name| *name != "*");
        let wanted: HashSet<Arc<str>> = plain.map(|name| self.share(name)).collect();
        // What is dropped is forgotten, so that subscribing again sends again (statement 8).
        let before = std::mem::take(&mut self.named);
        for name in before.iter().filter(|name| !wanted.contains(*name)) {
            if wildcard == Wildcard::No {
                self.owed.remove(name);
                self.kept.remove(name);
            }
        }
        let added = wanted.iter().filter(|name| !before.contains(*name));
        let added: Vec<_> = added.map(|name| (name.clone(), self.has_if_covered(name))).collect();
        self.named = wanted;
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
        for (name, has) in added {
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
        let view = self.view.as_ref()?;
        let mut resources = if self.wildcard == Wildcard::No {
            let mut named: Vec<_> = self.named.iter().collect();
            named.sort();
            named.into_iter().filter_map(|name| view.get(self.kind, name)).collect()
        } else {
            view.all(self.kind)
        };
        let news: Arc<[Resource]> = if self.blank {
            resources.clone().into()
        } else {
            self.owed.values().filter_map(|owed| owed.now.clone()).collect()
        };
        if removals {
            self.kept.clear();
        }
        resources.extend(self.kept.values().cloned());
        self.owed.retain(|_, owed| owed.removal() && !removals);
        self.blank = false;
        self.answer = false;
        Some(Bundle {
            resources: resources.into(),
            news,
            removed: Arc::default(),
            joined: Vec::new(),
        })
    }

    /// What changed, as absence deletes nothing.
    fn take_changed(&mut self) -> Option<Bundle> {
        let mut resources: Vec<Resource> = Vec::new();
        if std::mem::take(&mut self.blank) {
            resources = self.view.as_ref()?.all(self.kind);
            self.owed.clear();
        }
        let changed = self.owed.values().any(Owed::changed);
        self.owed.retain(|_, owed| {
            if owed.why == Why::Refused && !changed {
                return true;
            }
            resources.extend(owed.now.clone());
            false
        });
        if resources.is_empty() && !std::mem::take(&mut self.answer) {
            return None;
        }
        self.answer = false;
        let resources: Arc<[Resource]> = resources.into();
        Some(Bundle {
            news: resources.clone(),
            resources,
            removed: Arc::default(),
            joined: Vec::new(),
        })
    }
}
