//! The delta protocol: requests and responses say what changes.

use std::collections::HashMap;

use super::names::Names;
use super::order::route_configuration;
use super::owed::{Has, Owed, Why};
use super::request::Protocol;
use super::subscription::{Bundle, Subscription, Wildcard};
use super::{Batch, Kind, Resource, Version, Versions, View, Words};

impl Subscription {
    /// The first request for a type. A name that the client says it has is sent if it differs;
    /// one that it does not have is sent, or told to be absent.
    pub(super) fn first_delta(
        kind: Kind,
        view: &View,
        subscribe: &Words,
        unsubscribe: &Words,
        initial: &Versions,
    ) -> Self {
        let mut this = Self::new(kind, Protocol::Delta, view);
        if subscribe.star() {
            this.wildcard = Wildcard::Explicit;
        } else if subscribe.is_empty() && kind.wildcard_by_default() {
            this.wildcard = Wildcard::Legacy;
        }
        this.named = Names::read(subscribe, kind, view);
        if initial.is_empty() {
            this.begin();
        } else if this.up_to_date(initial) {
            // All that is missing is what is not there.
            let absent = this.named.odd().iter().filter(|name| !view.shows(kind, name));
            for name in absent.cloned().collect::<Vec<_>>() {
                this.ask(name, Has::Nothing);
            }
        } else {
            this.resume(initial);
        }
        this.change_delta(&Words::default(), unsubscribe);
        this
    }

    /// The client has nothing.
    fn begin(&mut self) {
        let wild = self.wildcard != Wildcard::No;
        self.answer = wild;
        if wild {
            self.ask_named(|_| true);
        }
        self.blank = wild || !self.named.is_empty(self.kind, &self.view);
    }

    fn ask_named(&mut self, which: impl Fn(&str) -> bool) {
        for name in self.named.all(self.kind, &self.view) {
            if which(&name) {
                self.ask(name, Has::Nothing);
            }
        }
    }

    /// Whether the client has the very versions of all that is wanted and there.
    fn up_to_date(&self, initial: &Versions) -> bool {
        let (kind, view) = (self.kind, &self.view);
        let should = match self.wildcard {
            Wildcard::No => self.named.held(kind, view),
            _ => view.held_digest(kind),
        };
        initial.digest() == Some(should)
    }

    /// The client has something else than it should.
    fn resume(&mut self, initial: &Versions) {
        let told: HashMap<&str, &str> = initial.iter().collect();
        let (mut any, mut there) = (false, 0);
        for (name, version) in &told {
            if !self.covers(name) {
                continue;
            }
            any = true;
            let now = self.view.version(self.kind, name);
            there += usize::from(now.is_some());
            let has = Version::parse(version).map_or(Has::Unsure, Has::Version);
            if now.is_none_or(|now| has != Has::Version(now)) {
                let now = self.view.get(self.kind, name);
                let owed = Owed { has, now, why: Why::Differs };
                self.owed.insert(self.view.shared_name(self.kind, name), owed);
            }
        }
        if !any {
            return self.begin();
        }
        let wild = self.wildcard != Wildcard::No;
        if wild && there < self.view.names_digest(self.kind).count {
            for name in self.view.names(self.kind) {
                if !told.contains_key(name.as_ref()) {
                    let now = self.view.get(self.kind, &name);
                    self.owed.insert(name, Owed { has: Has::Nothing, now, why: Why::Differs });
                }
            }
        }
        self.ask_named(|name| !told.contains_key(name));
    }

    /// A later request for a type.
    pub(super) fn change_delta(&mut self, subscribe: &Words, unsubscribe: &Words) {
        for name in unsubscribe.iter() {
            if name == "*" {
                self.end_wildcard();
            } else if self.named.remove(name, self.kind, &self.view) {
                // The client dropped it. It gets it back from the wildcard, or hears that it is
                // not there (statement 13).
                if self.wildcard == Wildcard::No {
                    self.owed.remove(name);
                } else {
                    self.ask(self.view.shared_name(self.kind, name), Has::Nothing);
                }
            }
        }
        for name in subscribe.iter() {
            if name == "*" {
                self.begin_wildcard();
                continue;
            }
            let has = if self.covers(name) { self.has(name) } else { Has::Nothing };
            let name = self.view.shared_name(self.kind, name);
            self.named.insert(name.clone(), self.kind, &self.view);
            self.ask(name, has);
        }
    }

    /// Everything is wanted from now on. What the client has by name it has.
    pub(super) fn begin_wildcard(&mut self) {
        if std::mem::replace(&mut self.wildcard, Wildcard::Explicit) != Wildcard::No {
            return;
        }
        self.answer = true;
        if self.blank {
            // What was asked for by name and is not there must be told all the same.
            self.ask_named(|_| true);
        } else if self.named.is_empty(self.kind, &self.view) {
            self.blank = true;
        } else {
            for resource in self.view.all(self.kind) {
                let name = resource.name().clone();
                if !self.named.contains(&name, self.kind, &self.view) {
                    let owed = Owed { has: Has::Nothing, now: Some(resource), why: Why::Differs };
                    self.owed.insert(name, owed);
                }
            }
        }
    }

    /// Only what is named is wanted from now on; the client drops the rest.
    pub(super) fn end_wildcard(&mut self) {
        self.wildcard = Wildcard::No;
        if std::mem::take(&mut self.blank) {
            // What was owed without being listed is now listed, or not wanted.
            self.ask_named(|_| true);
        }
        self.answer = false;
        let Self { kind, named, view, .. } = self;
        self.owed.retain(|name, _| named.contains(name, *kind, view));
        self.kept.retain(|name, _| named.contains(name, *kind, view));
    }

    /// All that is due in the delta protocol, which from then on counts as sent. A virtual host
    /// whose route configuration is not `delivered` is parked.
    pub(super) fn take_delta(
        &mut self,
        removals: bool,
        delivered: &dyn Fn(&str) -> bool,
    ) -> Option<Bundle> {
        let kind = self.kind;
        let whole = std::mem::take(&mut self.blank).then(|| self.covered());
        if whole.is_some() {
            self.tell_absent();
            self.owed.retain(|_, owed| owed.now.is_none());
        }
        let mut resources: Vec<Resource> = Vec::new();
        let mut removed = Vec::new();
        let mut joined = Vec::new();
        let changed = std::mem::take(&mut self.renewed)
            || self.owed.values().any(|owed| owed.changed() && owed.due(kind, removals));
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
        // What is owed beside the whole is absent, so it is one or the other.
        let batch = match whole {
            Some(whole) => {
                let names = whole.iter().filter(|_| kind == Kind::Routes).map(Resource::name);
                joined.extend(names.cloned());
                whole
            }
            None => resources.into(),
        };
        let resources = self.park(batch, delivered);
        let parked = self.owed.values().any(|owed| owed.why == Why::Parked);
        if resources.is_empty() && removed.is_empty() && (!self.answer || parked) {
            return None;
        }
        self.answer = false;
        if kind != Kind::Routes {
            joined.clear();
        }
        Some(Bundle { news: resources.clone(), resources, removed: removed.into(), joined })
    }

    /// Lists what was asked for by name, not told yet, and is not there.
    fn tell_absent(&mut self) {
        if self.wildcard != Wildcard::No {
            return;
        }
        let Self { kind, named, view, owed, .. } = self;
        for name in named.odd().iter().filter(|name| !view.shows(*kind, name)) {
            let absent = Owed { has: Has::Nothing, now: None, why: Why::Asked };
            owed.entry(name.clone()).or_insert(absent);
        }
    }

    /// Parks virtual hosts, and returns the others.
    fn park(&mut self, batch: Batch, delivered: &dyn Fn(&str) -> bool) -> Batch {
        if self.kind != Kind::VirtualHost || batch.tables().iter().all(|table| delivered(table)) {
            return batch;
        }
        let (fine, parked): (Vec<_>, Vec<_>) =
            batch.iter().cloned().partition(|host| delivered(route_configuration(host.name())));
        for host in parked {
            let name = host.name().clone();
            self.owed.insert(name, Owed { has: Has::Nothing, now: Some(host), why: Why::Parked });
        }
        fine.into()
    }
}
