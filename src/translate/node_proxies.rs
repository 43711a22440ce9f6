//! The node proxies: one serves every pod of its node whose network namespace is pinned.
//!
//! A node proxy sees what its pods see. Its tables are those of the groups of its pods, side by
//! side, and its listeners are heads of their own before tails that all share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::naming::{NO_PODS, NODE_PROXY_LENS, node_lens, node_proxy_id, zone_lens};
use super::{checks, proxies};
use crate::model::{Finding, Locality, MeshPod, Pins, PodKey, Projection};
use crate::xds::{Group, NodeSpec};

/// Nodes by name, with their localities.
type Nodes = BTreeMap<Arc<str>, Option<Locality>>;

/// The node proxies that were last seen.
#[derive(Debug, Default)]
pub(super) struct NodeProxies {
    nodes: Arc<Nodes>,
    pins: Option<Arc<Pins>>,
    /// What is served to each, by node id. None while the pins are not known: then they wait.
    pub specs: BTreeMap<Arc<str>, Arc<NodeSpec>>,
    /// The namespaces of the pods that they serve.
    pub namespaces: BTreeSet<Arc<str>>,
    /// By the key of a node's group, the keys of its pods' groups.
    groups: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Pods that cannot be served.
    pub findings: Vec<Finding>,
}

/// What is gathered for one node.
#[derive(Default)]
struct Gathered<'a> {
    locality: Option<&'a Locality>,
    pods: Vec<(&'a MeshPod, String)>,
}

impl NodeProxies {
    /// Whether the nodes and pins are those that were last seen.
    pub(super) fn saw(&self, projection: &Projection) -> bool {
        self.nodes == projection.nodes && self.pins == projection.pins
    }

    /// Takes in nodes, pins, and the pods with what is served to their sidecars.
    pub(super) fn follow(
        &mut self,
        projection: &Projection,
        sidecars: &BTreeMap<Arc<str>, Arc<NodeSpec>>,
        form: proxies::Form,
    ) {
        self.nodes = projection.nodes.clone();
        self.pins.clone_from(&projection.pins);
        let old = std::mem::take(&mut self.specs);
        self.namespaces.clear();
        self.groups.clear();
        self.findings.clear();
        let Some(pins) = projection.pins.clone() else { return };
        let mut nodes: BTreeMap<&Arc<str>, Gathered<'_>> = BTreeMap::new();
        for (node, locality) in projection.nodes.iter() {
            nodes.entry(node).or_default().locality = locality.as_ref();
        }
        let mut taken: BTreeMap<&str, &PodKey> = BTreeMap::new();
        for pod in projection.pods.values().filter(|pod| checks::pod(pod).is_none()) {
            let Some(node) = &pod.place.node else { continue };
            let of_node = nodes.entry(node).or_default();
            let Some(uid) = &pod.uid else { continue };
            let Some(path) = pins.path(uid) else { continue };
            // Two listeners on one address of one namespace: Envoy would refuse the second.
            if let Some(first) = taken.get(&**uid) {
                self.findings.push(checks::same_uid(pod, first));
                continue;
            }
            taken.insert(uid, &pod.key);
            of_node.pods.push((pod, path));
        }
        for (node, gathered) in nodes {
            let id: Arc<str> = node_proxy_id(node).into();
            let spec = self.spec(node, &id, &gathered, sidecars, form);
            let kept = old.get(&id).filter(|old| ***old == spec).cloned();
            self.specs.insert(id, kept.unwrap_or_else(|| Arc::new(spec)));
        }
    }

    fn spec(
        &mut self,
        node: &str,
        id: &Arc<str>,
        gathered: &Gathered<'_>,
        sidecars: &BTreeMap<Arc<str>, Arc<NodeSpec>>,
        form: proxies::Form,
    ) -> NodeSpec {
        let mut own = Vec::new();
        let mut parts = BTreeSet::new();
        for (pod, path) in &gathered.pods {
            own.extend(proxies::listeners(pod, Some(path), form));
            parts.extend(sidecars.get(&*super::naming::node_id(&pod.key)).map(|s| s.group.clone()));
            self.namespaces.insert(pod.key.namespace.clone());
        }
        // A node that serves no pod has no use for any table.
        let group = if parts.is_empty() { NO_PODS.into() } else { id.clone() };
        self.groups.insert(group.clone(), parts);
        let zone = gathered.locality.map(zone_lens);
        let lenses = [node_lens(node)].into_iter().chain(zone).chain([NODE_PROXY_LENS.into()]);
        NodeSpec { group, lenses: lenses.collect(), own, retry: true }
    }

    /// Adds the groups of nodes to those of which they are made.
    pub(super) fn add_groups(&self, groups: &mut BTreeMap<Arc<str>, Arc<Group>>) {
        for (key, parts) in &self.groups {
            let union = Group::union(parts.iter().filter_map(|part| groups.get(part)).cloned());
            groups.insert(key.clone(), Arc::new(union));
        }
    }
}
