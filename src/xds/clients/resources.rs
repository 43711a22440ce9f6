//! How a stream stands, resource by resource: made when somebody asks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::Client;
use crate::xds::owed::Why;
use crate::xds::subscription::{Subscription, Wildcard};
use crate::xds::{Kind, Resource, Snapshot, View};

/// What became of the newest form of a resource, or of its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The client accepted it.
    Synced,
    /// It was sent, and is not answered.
    Unanswered,
    /// The response that brought it was refused.
    Refused,
    /// It is not sent yet.
    NotSent,
}

/// A resource of one stream.
#[derive(Debug, Clone)]
pub struct Config {
    /// The type.
    pub kind: Kind,
    /// The name.
    pub name: Arc<str>,
    /// What became of it.
    pub delivery: Delivery,
    /// Its newest form; `None` where it does not exist (any more).
    pub resource: Option<Resource>,
}

/// What is copied of a subscription, so that it can be looked at without the lock.
struct Look {
    kind: Kind,
    wildcard: bool,
    blank: bool,
    named: BTreeSet<Arc<str>>,
    owed: BTreeMap<Arc<str>, Why>,
    flying: HashSet<Arc<str>>,
    missed: BTreeSet<Arc<str>>,
    view: View,
}

impl Look {
    fn at(sub: &Subscription, newest: Option<&View>) -> Self {
        Self {
            kind: sub.kind,
            wildcard: sub.wildcard != Wildcard::No,
            blank: sub.blank,
            named: sub.named.all(sub.kind, &sub.view),
            owed: sub.owed.iter().map(|(name, owed)| (name.clone(), owed.why)).collect(),
            flying: sub.flights.names().cloned().collect(),
            missed: newest
                .map_or_else(BTreeSet::new, |newest| differing(sub, &sub.view, newest).collect()),
            view: newest.unwrap_or(&sub.view).clone(),
        }
    }

    fn configs(mut self) -> Vec<Config> {
        let mut names = std::mem::take(&mut self.named);
        names.extend(self.owed.keys().chain(&self.missed).cloned());
        if self.wildcard {
            names.append(&mut self.view.names(self.kind));
        }
        let config = |name: Arc<str>| Config {
            kind: self.kind,
            delivery: self.delivery(&name),
            resource: self.view.get(self.kind, &name),
            name,
        };
        names.into_iter().map(config).collect()
    }

    fn delivery(&self, name: &str) -> Delivery {
        if self.blank || self.missed.contains(name) {
            return Delivery::NotSent;
        }
        match self.owed.get(name) {
            Some(Why::Refused) => Delivery::Refused,
            Some(_) => Delivery::NotSent,
            None if self.flying.contains(name) => Delivery::Unanswered,
            None => Delivery::Synced,
        }
    }
}

impl Client {
    /// All that the stream asked for, by type in the order of sending, and by name.
    pub(super) fn configs(&self, newest: Option<&Arc<Snapshot>>) -> Vec<Config> {
        let state = self.lock();
        let session = &state.session;
        let newest = session.missed(newest);
        let looks: Vec<_> =
            session.subs.values().map(|sub| Look::at(sub, newest.as_ref())).collect();
        drop(state);
        looks.into_iter().flat_map(Look::configs).collect()
    }
}

/// The names that a client wants and that are not the same in two views.
pub(super) fn differing<'a>(
    sub: &'a Subscription,
    old: &'a View,
    new: &'a View,
) -> impl Iterator<Item = Arc<str>> + 'a {
    let kind = sub.kind;
    let mut names = BTreeSet::new();
    if old.generation() != new.generation() {
        let known =
            if new.same_shape(old) { new.changed_since(kind, old.generation()) } else { None };
        names = known.unwrap_or_else(|| {
            let named = sub.named.all(kind, old);
            old.names(kind).into_iter().chain(new.names(kind)).chain(named).collect()
        });
    }
    names.retain(|name| sub.covers(name) && old.version(kind, name) != new.version(kind, name));
    names.into_iter()
}
