//! The proxies: what tells one pod's view from another's.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;
use imbl::OrdMap;

use super::endpoints::Places;
use super::naming::{
    self, CAPTURE_PORT, DNS_PORT, capture_listener, dns_listener, node_lens, zone_lens,
};
use super::node_proxies::NodeProxies;
use super::scope::{Caller, Scopes};
use super::{CaptureMode, checks, listener};
use crate::model::{Finding, MeshPod, PodKey, Projection};
use crate::xds::{Kind, NodeSpec, Own};

/// The key of the stem of the DNS listeners of those who see the whole mesh.
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
    pods: OrdMap<PodKey, Arc<MeshPod>>,
    sidecars: BTreeMap<Arc<str>, Arc<NodeSpec>>,
    /// The proxies of nodes.
    pub of_nodes: NodeProxies,
    /// What is served to each, sidecars and node proxies.
    pub nodes: Arc<BTreeMap<Arc<str>, Arc<NodeSpec>>>,
    /// What tells their configurations apart, by the key of their group.
    pub callers: BTreeMap<Arc<str>, Caller>,
    /// The scopes that any of them has.
    pub scopes: Scopes,
    /// From where they look.
    pub places: Arc<Places>,
    /// What is wrong with pods.
    pub findings: Vec<Finding>,
}

impl Proxies {
    /// Takes the pods, nodes and pins in. Tells whether any of them is another than before.
    pub(super) fn follow(&mut self, projection: &Projection, form: Form) -> bool {
        let pods = &projection.pods;
        let same = *pods == self.pods;
        if same && self.of_nodes.saw(projection) {
            return false;
        }
        if !same {
            self.follow_pods(pods, form);
        }
        let nodes_mattered = !self.of_nodes.specs.is_empty();
        self.of_nodes.follow(projection, &self.sidecars, &self.callers, form);
        if same && !nodes_mattered && self.of_nodes.specs.is_empty() {
            return false;
        }
        let all = self.sidecars.iter().chain(&self.of_nodes.specs);
        self.nodes = Arc::new(all.map(|(id, spec)| (id.clone(), spec.clone())).collect());
        true
    }

    fn follow_pods(&mut self, pods: &OrdMap<PodKey, Arc<MeshPod>>, form: Form) {
        let (mut sidecars, mut callers) = (BTreeMap::new(), BTreeMap::new());
        let mut scopes = Scopes::new();
        self.findings.clear();
        for (key, pod) in pods {
            if let Some(finding) = checks::pod(pod) {
                self.findings.push(finding);
                continue;
            }
            let id: Arc<str> = naming::node_id(key).into();
            let kept = self.pods.get(key).filter(|old| *old == pod);
            let kept = kept.and_then(|_| self.sidecars.get(&id));
            let kept = kept.and_then(|spec| self.keep(spec, &mut callers, &mut scopes));
            let spec = kept.unwrap_or_else(|| {
                let (group, caller) = Caller::of(pod, &self.scopes, &mut scopes);
                let spec = sidecar(pod, &group, &caller, form);
                callers.entry(group).or_insert(caller);
                Arc::new(spec)
            });
            sidecars.insert(id, spec);
        }
        let places = Places::of(pods.values().map(Arc::as_ref));
        if *self.places != places {
            self.places = Arc::new(places);
        }
        self.pods.clone_from(pods);
        self.sidecars = sidecars;
        self.callers = callers;
        self.scopes = scopes;
    }

    /// Keeps the proxy of a pod that is as it was, with what it is part of.
    fn keep(
        &self,
        node: &Arc<NodeSpec>,
        callers: &mut BTreeMap<Arc<str>, Caller>,
        scopes: &mut Scopes,
    ) -> Option<Arc<NodeSpec>> {
        if !callers.contains_key(&node.group) {
            let caller = self.callers.get(&node.group)?.clone();
            if let Some(scope) = &caller.scope {
                scopes.insert(scope.words.clone(), scope.clone());
            }
            callers.insert(node.group.clone(), caller);
        }
        Some(node.clone())
    }
}

/// The proxy of a pod.
fn sidecar(pod: &MeshPod, group: &Arc<str>, caller: &Caller, form: Form) -> NodeSpec {
    let node = pod.place.node.as_deref().map(node_lens);
    let zone = pod.place.locality.as_ref().map(zone_lens);
    NodeSpec {
        group: group.clone(),
        identity: Some(pod.service_account.clone()),
        lenses: node.into_iter().chain(zone).collect(),
        own: listeners(pod, None, caller, form),
        // What an Envoy in the pod's own namespace refuses once, it refuses always.
        retry: false,
    }
}

/// The listeners of a pod, on its own proxy or, in the network namespace of a file, on its node's.
pub(super) fn listeners(
    pod: &MeshPod,
    netns: Option<&str>,
    caller: &Caller,
    form: Form,
) -> Vec<Own> {
    let own = |name: String, port, protocol, stem: Arc<str>| Own {
        kind: Kind::Listener,
        head: listener::head(&name, port, protocol, pod.ipv6, netns),
        name: name.into(),
        stem,
    };
    // In scoped mode nothing passes through, so that there is no difference.
    let stem = match form.mode {
        CaptureMode::RedirectAll if netns.is_some() => caller.node_stem.clone(),
        CaptureMode::RedirectAll | CaptureMode::Scoped => caller.stem.clone(),
    };
    let mut listeners = vec![own(capture_listener(&pod.key), CAPTURE_PORT, Protocol::Tcp, stem)];
    if form.dns {
        let stem = caller.scope.as_ref().map_or(DNS_STEM.into(), |scope| scope.dns_stem.clone());
        listeners.push(own(dns_listener(&pod.key), DNS_PORT, Protocol::Udp, stem));
    }
    listeners
}
