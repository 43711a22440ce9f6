//! Who claims what: domains and addresses that must not stand in two places.
//!
//! The projection has decided what can clash by the rules of the mesh: keys, short names and
//! ClusterIPs. This is the last look before Envoy's, which would refuse a whole table or listener
//! for one domain or match that stands in it twice.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::service::Lost;
use crate::model::ServiceKey;

/// What every service claims. It follows the services one by one, so that a change costs what
/// changed.
#[derive(Debug, Default)]
pub(super) struct Claims {
    of: HashMap<ServiceKey, Arc<[Arc<str>]>>,
    owners: HashMap<Arc<str>, BTreeSet<ServiceKey>>,
    concerned: BTreeSet<ServiceKey>,
}

impl Claims {
    /// Sets what a service claims; an empty set where it is gone.
    pub(super) fn set(&mut self, key: &ServiceKey, claims: Arc<[Arc<str>]>) {
        if self.of.get(key).is_some_and(|old| *old == claims) {
            return;
        }
        self.concerned.insert(key.clone());
        for old in self.of.remove(key).iter().flat_map(|old| old.iter()) {
            if let Some(owners) = self.owners.get_mut(old) {
                let held = owners.first() == Some(key);
                owners.remove(key);
                if held {
                    self.concerned.extend(owners.iter().cloned());
                }
                if owners.is_empty() {
                    self.owners.remove(old);
                }
            }
        }
        for claim in claims.iter() {
            let owners = self.owners.entry(claim.clone()).or_default();
            owners.insert(key.clone());
            if owners.first() == Some(key) {
                self.concerned.extend(owners.iter().cloned());
            }
        }
        if !claims.is_empty() {
            self.of.insert(key.clone(), claims);
        }
    }

    /// The services that may lose something else than when this was last asked.
    pub(super) fn concerned(&mut self) -> BTreeSet<ServiceKey> {
        std::mem::take(&mut self.concerned)
    }

    /// What a service loses, and to whom: the first in the order of keys holds it, since of what
    /// could tell them apart the projection has told all.
    pub(super) fn lost(&self, key: &ServiceKey) -> Lost {
        let claims = self.of.get(key).into_iter().flat_map(|claims| claims.iter());
        let lost = claims.filter_map(|claim| {
            let holder = self.owners.get(claim)?.first().filter(|holder| *holder != key)?;
            Some((claim.clone(), holder.clone()))
        });
        lost.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn claims(of: &[&str]) -> Arc<[Arc<str>]> {
        of.iter().map(|claim| Arc::from(*claim)).collect()
    }

    #[test]
    fn the_first_key_holds_what_two_claim_until_it_goes() {
        let (a, b) = (ServiceKey::new("a", "x"), ServiceKey::new("b", "x"));
        let mut all = Claims::default();
        all.set(&b, claims(&["10.0.0.1", "b.only"]));
        assert!(all.lost(&b).is_empty() && all.concerned() == [b.clone()].into());
        all.set(&a, claims(&["10.0.0.1"]));
        assert_eq!(all.concerned(), [a.clone(), b.clone()].into());
        assert_eq!(all.lost(&b), Lost::from([("10.0.0.1".into(), a.clone())]));
        assert!(all.lost(&a).is_empty());
        all.set(&a, claims(&[]));
        assert_eq!(all.concerned(), [a.clone(), b.clone()].into());
        assert!(all.lost(&b).is_empty());
        assert!(all.of.len() == 1 && all.owners.len() == 2);
        all.set(&b, claims(&[]));
        assert!(all.of.is_empty() && all.owners.is_empty());
    }
}
