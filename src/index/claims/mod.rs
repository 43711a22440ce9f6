//! Who holds what: keys, short names and ClusterIPs that several Services claim.
//!
//! All of it is a function of the Services alone. It follows them one by one, so that a change costs
//! what it changes: whoever came or went, and those who claim what thereby got another holder.

mod contest;
mod order;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use imbl::OrdMap;

use super::facts::ServiceFacts;
use super::store::Name;
use super::told::Told;
use super::{Report, Settings};
use crate::model::{Finding, Findings, MeshNames, ServiceKey};
use contest::Contest;

/// A Service that holds its key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Holder {
    pub facts: Arc<ServiceFacts>,
    pub owns_short_name: bool,
    pub owned_ips: Vec<IpAddr>,
}

impl Holder {
    /// The Service's own name.
    pub(super) fn name(&self) -> Name {
        name_of(&self.facts)
    }
}

/// The claims of all Services.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The Services as they stand in the contests, which those never touched do not.
    standing: BTreeMap<Name, Arc<ServiceFacts>>,
    keys: Contest<ServiceKey>,
    /// Of those that hold their keys and have mesh names.
    short_names: Contest<Arc<str>>,
    /// Of those that hold their keys.
    addresses: Contest<IpAddr>,
    holders: BTreeMap<ServiceKey, Holder>,
    told: Told<Name>,
}

impl Claims {
    /// Those that hold their keys.
    pub(super) fn holders(&self) -> &BTreeMap<ServiceKey, Holder> {
        &self.holders
    }

    /// Takes in Services that changed. Returns the keys that are held by others than before, by
    /// nobody any more, or by the same one otherwise.
    pub(super) fn follow(
        &mut self,
        services: &OrdMap<Name, Arc<ServiceFacts>>,
        changed: &BTreeSet<Name>,
        settings: &Settings,
        found: &mut Findings,
    ) -> BTreeSet<ServiceKey> {
        let touched = |name: &Name| !settings.never_touches(&name.0);
        let mut keys = BTreeSet::new();
        for name in changed {
            if let Some(old) = self.standing.remove(name) {
                let key = key_of(&old);
                self.keys.leave(&key, &old);
                keys.insert(key);
            }
            if let Some(facts) = services.get(name).filter(|_| touched(name)) {
                let key = key_of(facts);
                self.keys.enter(key.clone(), facts.clone());
                keys.insert(key);
                self.standing.insert(name.clone(), facts.clone());
            }
        }
        for key in &keys {
            self.hand_over(key);
        }
        let mut names = changed.clone();
        let concerned =
            [self.keys.concerned(), self.short_names.concerned(), self.addresses.concerned()];
        for facts in concerned.iter().flatten() {
            keys.insert(key_of(facts));
            names.insert(name_of(facts));
        }
        for name in names {
            let found_now = match services.get(&name) {
                Some(facts) if touched(&name) => self.judged(facts, &settings.names),
                Some(facts) => report(facts, |report| words::in_vain(facts, report)),
                None => Vec::new(),
            };
            self.told.set(&name, found_now, found);
        }
        keys.retain(|key| self.settle(key));
        keys
    }

    /// Who holds a key now claims a short name and addresses; who held it before does not.
    fn hand_over(&mut self, key: &ServiceKey) {
        let old = self.holders.get(key).map(|holder| holder.facts.clone());
        let new = self.keys.holder(key).cloned();
        if let (Some(old), Some(new)) = (&old, &new)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        if let Some(old) = old {
            if has_mesh_name(&old) {
                self.short_names.leave(&old.mesh_name, &old);
            }
            old.cluster_ips.iter().for_each(|ip| self.addresses.leave(ip, &old));
        }
        if let Some(new) = new {
            if has_mesh_name(&new) {
                self.short_names.enter(new.mesh_name.clone(), new.clone());
            }
            new.cluster_ips.iter().for_each(|ip| self.addresses.enter(*ip, new.clone()));
        }
    }

    /// Makes the holder of a key anew. Tells whether it is another than before.
    fn settle(&mut self, key: &ServiceKey) -> bool {
        let holder = self.keys.holder(key).map(|facts| self.holder(facts));
        if self.holders.get(key) == holder.as_ref() {
            return false;
        }
        match holder {
            Some(holder) => self.holders.insert(key.clone(), holder),
            None => self.holders.remove(key),
        };
        true
    }

    fn holder(&self, facts: &Arc<ServiceFacts>) -> Holder {
        let owned = facts.cluster_ips.iter().filter(|ip| self.addresses.is_held_by(ip, facts));
        Holder {
            facts: facts.clone(),
            owns_short_name: has_mesh_name(facts)
                && self.short_names.is_held_by(&facts.mesh_name, facts),
            owned_ips: owned.copied().collect(),
        }
    }

    /// What a Service loses to others.
    fn judged(&self, facts: &Arc<ServiceFacts>, names: &MeshNames) -> Vec<Finding> {
        let key = key_of(facts);
        let lost_to = |holder: Option<&Arc<ServiceFacts>>| {
            holder.filter(|holder| !Arc::ptr_eq(holder, facts)).cloned()
        };
        report(facts, |report| {
            if let Some(winner) = lost_to(self.keys.holder(&key)) {
                words::no_key(facts, &key, &winner, report);
                return;
            }
            if has_mesh_name(facts)
                && let Some(owner) = lost_to(self.short_names.holder(&key.name))
            {
                words::no_short_name(facts, &key, &owner, names, report);
            }
            for ip in &facts.cluster_ips {
                if let Some(owner) = lost_to(self.addresses.holder(ip)) {
                    words::no_address(*ip, &owner, report);
                }
            }
        })
    }
}

fn name_of(facts: &ServiceFacts) -> Name {
    (facts.object.namespace.clone(), facts.object.name.clone())
}

/// The key that a Service claims.
pub(super) fn key_of(facts: &ServiceFacts) -> ServiceKey {
    ServiceKey::new(facts.object.namespace.clone(), facts.mesh_name.clone())
}

/// Whether the mesh has a name for it: headless and unallocated Services have none.
fn has_mesh_name(facts: &ServiceFacts) -> bool {
    !facts.headless && !facts.cluster_ips.is_empty()
}

fn report(facts: &ServiceFacts, tell: impl FnOnce(&mut Report)) -> Vec<Finding> {
    let mut report = Report::new(facts.object.clone(), facts.origin.clone());
    tell(&mut report);
    report.into_findings()
}
