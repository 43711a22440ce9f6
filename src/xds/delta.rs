//! The delta protocol: requests and responses say what changes.

use std::sync::Arc;

use super::owed::{Has, Owed, Why};
use super::request::Protocol;
use super::subscription::{Bundle, Subscription, Wildcard};
use super::{Kind, Resource, Version};

impl Subscription {
    /// The first request for a type. A name that the client says it has is sent if it differs;
    /// one that it does not have is sent, or told to be absent.
    pub(super) fn first_delta(
        kind: Kind,
        subscribe: &[String],
        unsubscribe: &[String],
        initial: Vec<(String, String)>,
    ) -> Self {
        let mut this = Self::new(kind, Protocol::Delta);
        if subscribe.iter().any(|name| name == "*") {
            this.wildcard = Wildcard::Explicit;
        } else if subscribe.is_empty() && kind.wildcard_by_default() {
            this.wildcard = Wildcard::Legacy;
        }
        this.named =
            subscribe.iter().filter(|name| *name != "*").map(|s| s.as_str().into()).collect();
        for (name, version) in initial {
            if this.covers(&name) {
                let has = Version::parse(&version).map_or(Has::Unsure, Has::Version);
                let owed = Owed { has, now: None, why: Why::Differs };
                this.owed.insert(name.into(), owed);
            }
        }
        let wild = this.wildcard != Wildcard::No;
        this.blank = wild && this.owed.is_empty();
        this.answer = this.blank;
        let unknown = this.named.iter().filter(|name| !this.owed.contains_key(*name));
        for name in unknown.cloned().collect::<Vec<_>>() {
            this.ask(name, Has::Nothing);
        }
        this.change_delta(&[], unsubscribe);
        this
    }

    /// A later request for a type.
    pub(super) fn change_delta(&mut self, subscribe: &[String], unsubscribe: &[String]) {
        for name in unsubscribe {
            if name == "*" {
                self.end_wildcard();
            } else if let Some(name) = self.named.take(name.as_str()) {
                // The client dropped it. It gets it back from the wildcard, or hears that it is
                // not there (statement 13).
                if self.wildcard == Wildcard::No {
                    self.owed.remove(&name);
                } else {
                    self.ask(name, Has::Nothing);
                }
            }
        }
        for name in subscribe {
            if name == "*" {
                self.begin_wildcard();
                continue;
            }
            let has = if self.covers(name) { self.has(name) } else { Has::Nothing };
            let name = self.share(name);
            self.named.insert(name.clone());
            self.ask(name, has);
        }
    }

    /// Everything is wanted from now on. What the client has by name it has.
    pub(super) fn begin_wildcard(&mut self) {
        if std::mem::replace(&mut self.wildcard, Wildcard::Explicit) != Wildcard::No {
            return;
        }
        self.answer = true;
        let Some(view) = self.view.clone().filter(|_| !self.named.is_empty()) else {
            self.blank = true;
            return;
        };
        for resource in view.all(self.kind) {
            let name = resource.name().clone();
            if !self.named.contains(&name) {
                let owed = Owed { has: Has::Nothing, now: Some(resource), why: Why::Differs };
                self.owed.insert(name, owed);
            }
        }
    }

    /// Only what is named is wanted from now on; the client drops the rest.
    pub(super) fn end_wildcard(&mut self) {
        self.wildcard = Wildcard::No;
        if std::mem::take(&mut self.blank) {
            // What was owed without being listed is now listed, or not wanted.
            for name in self.named.iter().cloned().collect::<Vec<_>>() {
                self.ask(name, Has::Nothing);
            }
        }
        self.answer = false;
        let named = &self.named;
        self.owed.retain(|name, _| named.contains(name));
        self.kept.retain(|name, _| named.contains(name));
    }

    /// The name in the form that is shared with the snapshot, to spare memory.
    pub(super) fn share(&self, name: &str) -> Arc<str> {
        let view = self.view.as_ref();
        view.and_then(|view| view.shared_name(self.kind, name)).unwrap_or_else(|| name.into())
    }

    /// All that is due in the delta protocol, which from then on counts as sent. What is not
    /// `eligible` is parked.
    pub(super) fn take_delta(
        &mut self,
        removals: bool,
        eligible: &dyn Fn(&str) -> bool,
    ) -> Option<Bundle> {
        let mut resources: Vec<Resource> = Vec::new();
        let mut removed = Vec::new();
        let mut joined = Vec::new();
        if std::mem::take(&mut self.blank) {
            resources = self.view.as_ref()?.all(self.kind);
            self.owed.retain(|_, owed| owed.now.is_none());
            joined.extend(resources.iter().map(|r| r.name().clone()));
        }
        let kind = self.kind;
        let changed = self.owed.values().any(|owed| owed.changed() && owed.due(kind, removals));
        self.owed.retain(|name, owed| {
            if !(owed.due(kind, removals) || changed && owed.why == Why::Refused) {
                return true;
            }
            match &owed.now {
                Some(resource) => {
                    if owed.why == Why::Asked || !matches!(owed.has, Has::Version(_)) {
                        joined.push(name.clone());
                    }
                    resources.push(resource.clone());
                }
                None => removed.push(name.clone()),
            }
            false
        });
        self.park(&mut resources, eligible);
        let parked = self.owed.values().any(|owed| owed.why == Why::Parked);
        if resources.is_empty() && removed.is_empty() && (!self.answer || parked) {
            return None;
        }
        self.answer = false;
        let resources: Arc<[Resource]> = resources.into();
        if kind != Kind::Routes {
            joined.clear();
        }
        Some(Bundle { news: resources.clone(), resources, removed: removed.into(), joined })
    }

    fn park(&mut self, resources: &mut Vec<Resource>, eligible: &dyn Fn(&str) -> bool) {
        resources.retain(|resource| {
            let fine = eligible(resource.name());
            if !fine {
                let now = Some(resource.clone());
                let owed = Owed { has: Has::Nothing, now, why: Why::Parked };
                self.owed.insert(resource.name().clone(), owed);
            }
            fine
        });
    }
}
