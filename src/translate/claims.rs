//! Who claims what: domains and addresses that must not stand in two places.
//!
//! The projection has decided what can clash by the rules of the mesh: keys, short names and
//! ClusterIPs. This is the last look before Envoy's, which would refuse a whole table or listener
//! for one domain or match that stands in it twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::ServiceKey;

/// What every service claims. It follows the services one by one, so that a change costs what
/// changed.
#[derive(Debug, Default)]
pub(super) struct Claims {
    of: HashMap<ServiceKey, Arc<[Arc<str>]>>,
    owners: HashMap<Arc<str>, BTreeSet<ServiceKey>>,
    contested: BTreeSet<Arc<str>>,
}

impl Claims {
    /// Sets what a service claims; an empty set where it is gone.
    pub(super) fn set(&mut self, key: &ServiceKey, claims: Arc<[Arc<str>]>) {
        if self.of.get(key).is_some_and(|old| *old == claims) {
            return;
        }
        for old in self.of.remove(key).iter().flat_map(|old| old.iter()) {
            if let Some(owners) = self.owners.get_mut(old) {
                owners.remove(key);
                if owners.is_empty() {
                    self.owners.remove(old);
                }
            }
            self.judge(old);
        }
        for claim in claims.iter() {
            self.owners.entry(claim.clone()).or_default().insert(key.clone());
            self.judge(claim);
        }
        if !claims.is_empty() {
            self.of.insert(key.clone(), claims);
        }
    }

    fn judge(&mut self, claim: &Arc<str>) {
        if self.owners.get(claim).is_some_and(|owners| owners.len() > 1) {
            self.contested.insert(claim.clone());
        } else {
            self.contested.remove(claim);
        }
    }

    /// What each service loses, and to whom: the first in the order of keys holds it, since of
    /// what could tell them apart the projection has told all.
    pub(super) fn lost(&self) -> BTreeMap<ServiceKey, BTreeMap<Arc<str>, ServiceKey>> {
        let mut lost: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for claim in &self.contested {
            let mut owners = self.owners.get(claim).into_iter().flatten();
            let Some(holder) = owners.next() else { continue };
            for loser in owners {
                let of_loser: &mut BTreeMap<_, _> = lost.entry(loser.clone()).or_default();
                of_loser.insert(claim.clone(), holder.clone());
            }
        }
        lost
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
        assert!(all.lost().is_empty());
        all.set(&a, claims(&["10.0.0.1"]));
        let lost = all.lost();
        assert_eq!(lost.keys().collect::<Vec<_>>(), [&b]);
        assert_eq!(
            lost.get(&b).cloned().unwrap_or_default(),
            BTreeMap::from([("10.0.0.1".into(), a.clone())])
        );
        all.set(&a, claims(&[]));
        assert!(all.lost().is_empty());
        assert!(all.of.len() == 1 && all.owners.len() == 2);
        all.set(&b, claims(&[]));
        assert!(all.of.is_empty() && all.owners.is_empty());
    }
}
