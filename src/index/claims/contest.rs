//! A contest: who claims each of many things, and who holds it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::order::compare;
use crate::index::facts::ServiceFacts;

/// Who claims what, each in the order of claims: the first holds it.
#[derive(Debug)]
pub(super) struct Contest<C> {
    claimants: HashMap<C, Vec<Arc<ServiceFacts>>>,
    /// Where anybody came or went since it was last asked, and who held it then.
    touched: HashMap<C, Option<Arc<ServiceFacts>>>,
}

impl<C: Clone + Eq + Hash> Contest<C> {
    /// Who holds it.
    pub(super) fn holder(&self, claim: &C) -> Option<&Arc<ServiceFacts>> {
        self.claimants.get(claim).and_then(|all| all.first())
    }

    /// Whether it is these very facts that hold it.
    pub(super) fn is_held_by(&self, claim: &C, facts: &Arc<ServiceFacts>) -> bool {
        self.holder(claim).is_some_and(|holder| Arc::ptr_eq(holder, facts))
    }

    /// Another one claims it.
    pub(super) fn enter(&mut self, claim: C, facts: Arc<ServiceFacts>) {
        self.touch(&claim);
        let all = self.claimants.entry(claim).or_insert_with(|| Vec::with_capacity(1));
        let at = all.partition_point(|one| compare(one, &facts) == Ordering::Less);
        all.insert(at, facts);
    }

    /// One does not claim it any more.
    pub(super) fn leave(&mut self, claim: &C, facts: &Arc<ServiceFacts>) {
        self.touch(claim);
        let Some(all) = self.claimants.get_mut(claim) else { return };
        all.retain(|one| !Arc::ptr_eq(one, facts));
        if all.is_empty() {
            self.claimants.remove(claim);
        }
    }

    fn touch(&mut self, claim: &C) {
        if !self.touched.contains_key(claim) {
            self.touched.insert(claim.clone(), self.holder(claim).cloned());
        }
    }

    /// All who claim what another holds than when this was last asked, besides those who came and
    /// went themselves. A holder that only changed in what is no matter of claims is none.
    pub(super) fn concerned(&mut self) -> Vec<Arc<ServiceFacts>> {
        let touched = std::mem::take(&mut self.touched);
        let changed = touched.iter().filter(|(claim, before)| match (before, self.holder(claim)) {
            (Some(before), Some(now)) => compare(before, now) != Ordering::Equal,
            (before, now) => before.is_some() || now.is_some(),
        });
        changed.filter_map(|(claim, _)| self.claimants.get(claim)).flatten().cloned().collect()
    }
}

impl<C> Default for Contest<C> {
    fn default() -> Self {
        Self { claimants: HashMap::new(), touched: HashMap::new() }
    }
}
