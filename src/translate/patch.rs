//! What changed in the services since the last translation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::scope::Scope;
use super::service::Made;
use crate::model::{Records, ServiceKey};
use crate::xds::Entry;

/// Changes of a table by name; `None` removes.
pub(super) type Changes = BTreeMap<Arc<str>, Option<Entry>>;

/// What changed of one service.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Its clusters.
    pub clusters: Changes,
    /// Its load assignments.
    pub assignments: Changes,
    /// Its virtual host, as every namespace sees it.
    pub hosts: Changes,
    /// The same, as its own namespace sees it.
    pub own_hosts: Changes,
    /// Whether any of its chains changed.
    pub chains: bool,
    /// Whether its names or their addresses did.
    pub names: bool,
}

/// What changed, by service.
#[derive(Debug, Default)]
pub(super) struct Patch(BTreeMap<ServiceKey, Change>);

impl Patch {
    /// A service that takes the place of what it was before; either may be missing.
    pub(super) fn replace(&mut self, key: &ServiceKey, old: Option<&Made>, new: Option<&Made>) {
        let change = self.0.entry(key.clone()).or_default();
        for (made, present) in [(old, false), (new, true)] {
            let Some(made) = made else { continue };
            let when = |entry: Entry| present.then_some(entry);
            for (name, entry) in &made.cluster_entries {
                change.clusters.insert(name.clone(), when(entry.clone()));
            }
            for (name, entry) in &made.assignments {
                change.assignments.insert(name.clone(), when(entry.clone()));
            }
            if let Some(host) = &made.host {
                let name = &host.name;
                change.hosts.insert(name.clone(), when(Entry::Stem(host.qualified.clone())));
                change.own_hosts.insert(name.clone(), when(Entry::Stem(host.own.clone())));
            }
        }
        let chains = |made: Option<&Made>| made.map(|made| made.chains.clone()).unwrap_or_default();
        change.chains |= chains(old) != chains(new);
        let names = |made: Option<&Made>| Records::of(made.and_then(Made::named).into_iter());
        change.names |= names(old) != names(new);
    }

    /// Clusters that have a form for node proxies from now on.
    pub(super) fn mark(&mut self, made: &Made) {
        let change = self.0.entry(made.source.key.clone()).or_default();
        for (name, entry) in &made.cluster_entries {
            change.clusters.insert(name.clone(), Some(entry.clone()));
        }
    }

    /// Load assignments that are seen from other places.
    pub(super) fn see(&mut self, made: &Made) {
        let change = self.0.entry(made.source.key.clone()).or_default();
        for (name, entry) in &made.assignments {
            change.assignments.insert(name.clone(), Some(entry.clone()));
        }
    }

    /// What changed in a scope; `None`: in the whole mesh. The work is that of the smaller of both.
    pub(super) fn within(&self, scope: Option<&Scope>) -> Vec<(&ServiceKey, &Change)> {
        match scope {
            None => self.0.iter().collect(),
            Some(scope) if scope.listed.len() < self.0.len() => {
                scope.listed.iter().filter_map(|key| self.0.get_key_value(key)).collect()
            }
            Some(scope) => self.0.iter().filter(|(key, _)| scope.listed.contains(*key)).collect(),
        }
    }
}
