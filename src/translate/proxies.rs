//! The proxies: what tells one pod's view from another's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;

use super::endpoints::Places;
use super::naming::{
    self, CAPTURE_PORT, DNS_PORT, capture_listener, dns_listener, node_lens, zone_lens,
};
use super::node_proxies::NodeProxies;
use super::{CaptureMode, checks, listener};
use crate::model::{Finding, MeshPod, PodKey, Projection};
use crate::xds::{Kind, NodeSpec, Own};

/// The key of the stem of all DNS listeners.
pub(super) const DNS_STEM: &str = "dns";

/// What shapes the listeners of pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// What is captured.
    pub mode: CaptureMode,
    /// Whether each has a DNS listener.
    pub dns: bool,
}

/// The proxies of the pods that were last seen.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    pods: BTreeMap<PodKey, Arc<MeshPod>>,
    sidecars: BTreeMap<Arc<str>, Arc<NodeSpec>>,
    /// The proxies of nodes.
    pub of_nodes: NodeProxies,
    /// What is served to each, sidecars and node proxies.
    pub nodes: Arc<BTreeMap<Arc<str>, Arc<NodeSpec>>>,
    /// The namespaces that have any.
    pub namespaces: BTreeSet<Arc<str>>,
    /// From where they look.
    pub places: Arc<Places>,
    /// What is wrong with pods.
    pub findings: Vec<Finding>,
}

impl Proxies {
    /// Takes the pods, nodes and pins in. Tells whether any of them is another than before.
    pub(super) fn follow(&mut self, projection: &Projection, form: Form) -> bool {
        let pods = &projection.pods;
        let same = pods.len() == self.pods.len()
            && pods.iter().zip(&self.pods).all(|(a, b)| a.0 == b.0 && same(a.1, b.1));
        if same && self.of_nodes.saw(projection) {
            return false;
        }
        if !same {
            self.follow_pods(pods, form);
        }
        let nodes_mattered = !self.of_nodes.specs.is_empty();
        self.of_nodes.follow(projection, &self.sidecars, form);
        if same && !nodes_mattered && self.of_nodes.specs.is_empty() {
            return false;
        }
        let all = self.sidecars.iter().chain(&self.of_nodes.specs);
        self.nodes = Arc::new(all.map(|(id, spec)| (id.clone(), spec.clone())).collect());
        true
    }

    fn follow_pods(&mut self, pods: &BTreeMap<PodKey, Arc<MeshPod>>, form: Form) {
        let (mut sidecars, mut namespaces) = (BTreeMap::new(), BTreeSet::new());
        self.findings.clear();
        for (key, pod) in pods {
            if let Some(finding) = checks::pod(pod) {
                self.findings.push(finding);
                continue;
            }
            let id: Arc<str> = naming::node_id(key).into();
            let kept = self.pods.get(key).filter(|old| same(old, pod));
            let kept = kept.and_then(|_| self.sidecars.get(&id)).cloned();
            sidecars.insert(id, kept.unwrap_or_else(|| Arc::new(sidecar(pod, form))));
            if !namespaces.contains(&key.namespace) {
                namespaces.insert(key.namespace.clone());
            }
        }
        let places = Places::of(pods.values().map(Arc::as_ref));
        if *self.places != places {
            self.places = Arc::new(places);
        }
        self.pods.clone_from(pods);
        self.sidecars = sidecars;
        self.namespaces = namespaces;
    }
}

fn same(a: &Arc<MeshPod>, b: &Arc<MeshPod>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// The proxy of a pod. It sees the tables of its namespace, whatever its upstreams are: a pod
/// that lists them will be a group of its own, with tables of its own.
fn sidecar(pod: &MeshPod, form: Form) -> NodeSpec {
    let node = pod.place.node.as_deref().map(node_lens);
    let zone = pod.place.locality.as_ref().map(zone_lens);
    NodeSpec {
        group: pod.key.namespace.clone(),
        lenses: node.into_iter().chain(zone).collect(),
        own: listeners(pod, None, form),
        // What an Envoy in the pod's own namespace refuses once, it refuses always.
        retry: false,
    }
}

/// The listeners of a pod, on its own proxy or, in the network namespace of a file, on its node's.
pub(super) fn listeners(pod: &MeshPod, netns: Option<&str>, form: Form) -> Vec<Own> {
    let own = |name: String, port, protocol, stem: Arc<str>| Own {
        kind: Kind::Listener,
        head: listener::head(&name, port, protocol, pod.ipv6, netns),
        name: name.into(),
        stem,
    };
    // In scoped mode nothing passes through, so that there is no difference.
    let stem = match form.mode {
        CaptureMode::RedirectAll if netns.is_some() => naming::node_stem_of(&pod.key.namespace),
        CaptureMode::RedirectAll | CaptureMode::Scoped => naming::stem_of(&pod.key.namespace),
    };
    let mut listeners = vec![own(capture_listener(&pod.key), CAPTURE_PORT, Protocol::Tcp, stem)];
    if form.dns {
        let name = dns_listener(&pod.key);
        listeners.push(own(name, DNS_PORT, Protocol::Udp, DNS_STEM.into()));
    }
    listeners
}
