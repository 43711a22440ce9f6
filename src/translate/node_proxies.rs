//! The node proxies: one serves every pod of its node whose network namespace is pinned.
//!
//! A node proxy sees what its pods see. Its tables are those of the groups of its pods, side by
//! side, and its listeners are heads of their own before tails that all share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use super::naming::{NODE_PROXY_LENS, node_id, node_lens, node_proxy_id, zone_lens};
use super::scope::Caller;
use super::{checks, proxies};
use crate::model::{Finding, Locality, MeshPod, Pins, PodKey, Projection};
use crate::xds::{Group, NodeSpec, Version};

/// Nodes by name, with their localities.
type Nodes = BTreeMap<Arc<str>, Option<Locality>>;

/// The node proxies that were last seen.
#[derive(Debug, Default)]
pub(super) struct NodeProxies {
    nodes: Arc<Nodes>,
    pins: Option<Arc<Pins>>,
    /// What is served to each, by node id. None while the pins are not known: then they wait.
    pub specs: BTreeMap<Arc<str>, Arc<NodeSpec>>,
    /// The callers that they serve, by the keys of their groups.
    pub callers: BTreeSet<Arc<str>>,
    /// By the key of a node's group, the parts that it is made of.
    groups: BTreeMap<Arc<str>, Parts>,
    /// The groups that were made last.
    made: BTreeMap<Arc<str>, Union>,
    /// Pods that cannot be served.
    pub findings: Vec<Finding>,
}

/// A group that is made of others.
#[derive(Debug)]
struct Union {
    of: Vec<Arc<Group>>,
    group: Arc<Group>,
}

/// What is gathered for one node.
#[derive(Default)]
struct Gathered<'a> {
    locality: Option<&'a Locality>,
    pods: Vec<Pinned<'a>>,
}

/// A pod that a node proxy serves.
struct Pinned<'a> {
    pod: &'a MeshPod,
    /// The file of its network namespace.
    path: String,
    /// The key of the group of its own proxy.
    group: &'a Arc<str>,
    caller: &'a Caller,
}

/// The keys of groups, those that see the whole mesh first: of the table of the qualified names, which
/// each has in its own form, the first one counts.
type Parts = BTreeSet<(bool, Arc<str>)>;

impl NodeProxies {
    /// Whether the nodes and pins are those that were last seen.
    pub(super) fn saw(&self, projection: &Projection) -> bool {
        self.nodes == projection.nodes && self.pins == projection.pins
    }

    /// Takes in nodes, pins, and the pods with what is served to their sidecars.
    pub(super) fn follow(
        &mut self,
        projection: &Projection,
        sidecars: &OrdMap<Arc<str>, Arc<NodeSpec>>,
        callers: &BTreeMap<Arc<str>, Caller>,
        form: proxies::Form,
    ) {
        self.nodes = projection.nodes.clone();
        self.pins.clone_from(&projection.pins);
        let old = std::mem::take(&mut self.specs);
        self.callers.clear();
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
            let Some(sidecar) = sidecars.get(&*node_id(&pod.key)) else { continue };
            let Some((group, caller)) = callers.get_key_value(&sidecar.group) else { continue };
            // Two listeners on one address of one namespace: Envoy would refuse the second.
            if let Some(first) = taken.get(&**uid) {
                self.findings.push(checks::same_uid(pod, first));
                continue;
            }
            taken.insert(uid, &pod.key);
            of_node.pods.push(Pinned { pod, path, group, caller });
        }
        for (node, gathered) in nodes {
            let id: Arc<str> = node_proxy_id(node).into();
            let spec = self.spec(node, &gathered, form);
            let kept = old.get(&id).filter(|old| ***old == spec).cloned();
            self.specs.insert(id, kept.unwrap_or_else(|| Arc::new(spec)));
        }
    }

    fn spec(&mut self, node: &str, gathered: &Gathered<'_>, form: proxies::Form) -> NodeSpec {
        let mut own = Vec::new();
        let mut parts = Parts::new();
        for Pinned { pod, path, group, caller } in &gathered.pods {
            own.extend(proxies::listeners(pod, Some(path), caller, form));
            parts.insert((caller.scope.is_some(), Arc::clone(group)));
            self.callers.insert(Arc::clone(group));
        }
        let group = group_of(&parts);
        self.groups.entry(group.clone()).or_insert(parts);
        let zone = gathered.locality.map(zone_lens);
        let lenses = [node_lens(node)].into_iter().chain(zone).chain([NODE_PROXY_LENS.into()]);
        NodeSpec { group, identity: None, lenses: lenses.collect(), own, retry: true }
    }

    /// Adds the groups of nodes to those of which they are made.
    pub(super) fn add_groups(&mut self, groups: &mut BTreeMap<Arc<str>, Arc<Group>>) {
        let mut old = std::mem::take(&mut self.made);
        for (key, parts) in &self.groups {
            let parts = parts.iter().filter_map(|(_, part)| groups.get(part)).cloned();
            let parts: Vec<Arc<Group>> = parts.collect();
            let same = |old: &Union| {
                let mut pairs = old.of.iter().zip(&parts);
                old.of.len() == parts.len() && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
            };
            // The same one as before where it can be: what is known of it stays known.
            let kept = old.remove(key).filter(same).map(|old| old.group);
            let group = kept.unwrap_or_else(|| Arc::new(Group::union(parts.iter().cloned())));
            groups.insert(key.clone(), group.clone());
            self.made.insert(key.clone(), Union { of: parts, group });
        }
    }
}

/// The key of the group of a node that is made of these parts. Other parts are another group, since
/// what changed in a table since some generation tells nothing of what tells two tables apart.
fn group_of(parts: &Parts) -> Arc<str> {
    let words: Vec<&str> = parts.iter().map(|(_, part)| &**part).collect();
    let version = Version::of(&Bytes::from(words.join(",")).into());
    // No namespace holds an `@`, and the key of every pod a slash.
    format!("node@{version}").into()
}
