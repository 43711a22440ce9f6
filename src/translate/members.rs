//! What many pods share goes with the last of them: how many there are, and from where they look.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::endpoints::Places;
use crate::model::{Locality, MeshPod, PodKey};

/// How often each of some things is used.
#[derive(Debug)]
pub(super) struct Uses<K>(HashMap<K, usize>);

impl<K: Eq + Hash> Uses<K> {
    /// One use more. Tells whether it is the first.
    pub(super) fn begin(&mut self, of: K) -> bool {
        let uses = self.0.entry(of).or_insert(0);
        *uses += 1;
        *uses == 1
    }

    /// One use less. Tells whether it was the last.
    pub(super) fn end(&mut self, of: &K) -> bool {
        match self.0.get_mut(of) {
            Some(uses) if *uses > 1 => {
                *uses -= 1;
                false
            }
            Some(_) => {
                self.0.remove(of);
                true
            }
            None => false,
        }
    }
}

impl<K> Default for Uses<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The pods by the places from which they look.
#[derive(Debug, Default)]
pub(super) struct Lookouts {
    zones: Uses<Locality>,
    nodes: HashMap<Arc<str>, BTreeMap<PodKey, Option<Locality>>>,
    /// The places themselves; another allocation where any is another.
    pub places: Arc<Places>,
}

impl Lookouts {
    /// A pod is there.
    pub(super) fn come(&mut self, pod: &MeshPod) {
        let place = &pod.place;
        if let Some(zone) = &place.locality
            && self.zones.begin(zone.clone())
        {
            Arc::make_mut(&mut self.places).zones.insert(zone.clone());
        }
        if let Some(node) = &place.node {
            let pods = self.nodes.entry(node.clone()).or_default();
            pods.insert(pod.key.clone(), place.locality.clone());
            self.look_from(node);
        }
    }

    /// A pod is not there any more, or is another one now, which came before.
    pub(super) fn go(&mut self, pod: &MeshPod, now: Option<&MeshPod>) {
        let place = &pod.place;
        if let Some(zone) = &place.locality
            && self.zones.end(zone)
        {
            Arc::make_mut(&mut self.places).zones.remove(zone);
        }
        if let Some(node) = &place.node
            && now.is_none_or(|now| now.place.node != place.node)
        {
            if let Some(pods) = self.nodes.get_mut(node) {
                pods.remove(&pod.key);
                if pods.is_empty() {
                    self.nodes.remove(node);
                }
            }
            self.look_from(node);
        }
    }

    /// Where a node is, by the last of its pods: they agree, as long as the index is right.
    fn look_from(&mut self, node: &Arc<str>) {
        let now = self.nodes.get(node).and_then(|pods| pods.values().next_back());
        if self.places.nodes.get(node) == now {
            return;
        }
        let places = Arc::make_mut(&mut self.places);
        match now {
            Some(locality) => places.nodes.insert(node.clone(), locality.clone()),
            None => places.nodes.remove(node),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Place, Upstreams};

    fn pod(name: &str, node: &str) -> MeshPod {
        MeshPod {
            key: PodKey::new("shop", name),
            uid: None,
            place: Place { node: Some(node.into()), locality: Some(Locality::new("eu", "eu1")) },
            ipv6: false,
            service_account: "default".into(),
            upstreams: Upstreams::All,
        }
    }

    #[test]
    fn what_is_shared_is_there_from_the_first_to_the_last_use() {
        let mut uses = Uses::default();
        assert!(uses.begin("a") && !uses.begin("a") && uses.begin("b"));
        assert!(!uses.end(&"a") && uses.end(&"a"));
        assert!(!uses.end(&"a"), "there is none any more");
        assert!(uses.end(&"b") && uses.0.is_empty());
    }

    #[test]
    fn places_stay_the_same_allocation_while_they_are_the_same() {
        let (a, b) = (pod("a", "n1"), pod("b", "n1"));
        let mut all = Lookouts::default();
        all.come(&a);
        let first = all.places.clone();
        assert!(first.zones.len() == 1 && first.nodes.len() == 1);
        all.come(&b);
        all.go(&a, None);
        assert!(Arc::ptr_eq(&first, &all.places));
        let moved = pod("b", "n2");
        all.come(&moved);
        all.go(&b, Some(&moved));
        assert!(all.places.nodes.keys().eq([&Arc::from("n2")]));
        all.go(&moved, None);
        assert_eq!(*all.places, Places::default());
        assert!(all.nodes.is_empty() && first.nodes.len() == 1);
    }
}
