//! The proxies: what tells one pod's view from another's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;

use super::endpoints::Places;
use super::naming::{
    self, CAPTURE_PORT, DNS_PORT, capture_listener, dns_listener, node_lens, zone_lens,
};
use super::{checks, listener};
use crate::model::{Finding, MeshPod, PodKey};
use crate::xds::{Kind, NodeSpec, Own};

/// The key of the stem of all DNS listeners.
pub(super) const DNS_STEM: &str = "dns";

/// The proxies of the pods that were last seen.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    pods: BTreeMap<PodKey, Arc<MeshPod>>,
    /// What is served to each.
    pub nodes: Arc<BTreeMap<Arc<str>, Arc<NodeSpec>>>,
    /// The namespaces that have any.
    pub namespaces: BTreeSet<Arc<str>>,
    /// From where they look.
    pub places: Arc<Places>,
    /// What is wrong with pods.
    pub findings: Vec<Finding>,
}

impl Proxies {
    /// Takes the pods in. Tells whether any of them is another than before.
    pub(super) fn follow(&mut self, pods: &BTreeMap<PodKey, Arc<MeshPod>>, dns: bool) -> bool {
        let same = |a: &Arc<MeshPod>, b: &Arc<MeshPod>| Arc::ptr_eq(a, b) || a == b;
        if pods.len() == self.pods.len()
            && pods.iter().zip(&self.pods).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        {
            return false;
        }
        let (mut nodes, mut namespaces) = (BTreeMap::new(), BTreeSet::new());
        self.findings.clear();
        for (key, pod) in pods {
            if let Some(finding) = checks::pod(pod) {
                self.findings.push(finding);
                continue;
            }
            let id: Arc<str> = naming::node_id(key).into();
            let kept = self.pods.get(key).filter(|old| same(old, pod));
            let kept = kept.and_then(|_| self.nodes.get(&id)).cloned();
            nodes.insert(id, kept.unwrap_or_else(|| Arc::new(node(pod, dns))));
            if !namespaces.contains(&key.namespace) {
                namespaces.insert(key.namespace.clone());
            }
        }
        let places = Places::of(pods.values().map(Arc::as_ref));
        if *self.places != places {
            self.places = Arc::new(places);
        }
        self.pods.clone_from(pods);
        self.nodes = Arc::new(nodes);
        self.namespaces = namespaces;
        true
    }
}

/// The proxy of a pod. It sees the tables of its namespace, whatever its upstreams are: a pod
/// that lists them will be a group of its own, with tables of its own.
fn node(pod: &MeshPod, dns: bool) -> NodeSpec {
    let own = |name: String, port, protocol, stem: Arc<str>| Own {
        kind: Kind::Listener,
        head: listener::head(&name, port, protocol, pod.ipv6),
        name: name.into(),
        stem,
    };
    let stem = naming::stem_of(&pod.key.namespace);
    let mut listeners = vec![own(capture_listener(&pod.key), CAPTURE_PORT, Protocol::Tcp, stem)];
    if dns {
        let name = dns_listener(&pod.key);
        listeners.push(own(name, DNS_PORT, Protocol::Udp, DNS_STEM.into()));
    }
    let node = pod.place.node.as_deref().map(node_lens);
    let zone = pod.place.locality.as_ref().map(zone_lens);
    NodeSpec {
        group: pod.key.namespace.clone(),
        identity: Some(pod.service_account.clone()),
        lenses: node.into_iter().chain(zone).collect(),
        own: listeners,
    }
}
