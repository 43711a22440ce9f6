//! Pods that come, go and change, and what that changes elsewhere.

use std::sync::Arc;

use super::facts::PodFacts;
use super::store::{Index, Name};
use crate::model::ServiceKey;

/// The weight of an endpoint of a slice behind which nobody in the mesh is known.
pub(super) const WEIGHT: u32 = 1;

impl Index {
    /// Takes a pod in.
    pub(super) fn put_pod(&mut self, name: Name, facts: PodFacts) {
        let old = self.pods.get(&name).cloned();
        if old.as_deref() == Some(&facts) {
            return;
        }
        if old.as_ref().is_none_or(|old| !old.registers_like(&facts)) {
            self.registered.changed.insert(name.0.clone());
        }
        let facts = Arc::new(facts);
        self.pod_changed(&name, old.as_ref(), Some(&facts));
        self.pods.insert(name, facts);
    }

    /// Forgets a pod.
    pub(super) fn remove_pod(&mut self, name: &Name) {
        if let Some(old) = self.pods.remove(name) {
            self.registered.changed.insert(name.0.clone());
            self.pod_changed(name, Some(&old), None);
        }
    }

    fn pod_changed(
        &mut self,
        name: &Name,
        old: Option<&Arc<PodFacts>>,
        new: Option<&Arc<PodFacts>>,
    ) {
        self.changed.pods.insert(name.clone());
        let weight = |pod: Option<&Arc<PodFacts>>| pod.map_or(WEIGHT, |pod| weight(pod));
        if weight(old) != weight(new) {
            self.changed.weights.insert(name.0.clone());
        }
        for (pod, there) in [(old, false), (new, true)] {
            let Some(pod) = pod.filter(|pod| serves(pod)) else { continue };
            let account = ServiceKey::new(name.0.clone(), pod.service_account.clone());
            let of_account = self.serving.entry(account.clone()).or_default();
            if there {
                of_account.insert(name.1.clone(), pod.clone());
            } else {
                of_account.remove(&name.1);
            }
            if of_account.is_empty() {
                self.serving.remove(&account);
            }
            self.changed.registry.insert(account);
        }
    }
}

/// Whether the registry sends to a pod, fit or not.
fn serves(pod: &PodFacts) -> bool {
    pod.running && pod.registered()
}

/// The weight of an endpoint behind which a pod stands. One outside of the mesh has no say in it, and
/// a source need not know it.
pub(super) fn weight(pod: &PodFacts) -> u32 {
    if pod.managed == Some(true) { pod.weight } else { WEIGHT }
}
