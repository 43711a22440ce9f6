//! The proxies: what tells one pod's view from another's.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::members::{Lookouts, Uses};
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
    /// The proxies of nodes.
    pub of_nodes: NodeProxies,
    /// What is served to each by its id, sidecars and node proxies.
    pub nodes: OrdMap<Arc<str>, Arc<NodeSpec>>,
    /// What tells their configurations apart, by the key of their group.
    pub callers: BTreeMap<Arc<str>, Caller>,
    /// How many pods there are of each group.
    members: Uses<Arc<str>>,
    /// The scopes that any of them has.
    pub scopes: Scopes,
    /// How many groups there are of each scope.
    scoped: Uses<Arc<str>>,
    /// From where they look.
    pub lookouts: Lookouts,
    /// What is wrong with pods that have no proxy for it.
    pub unsound: BTreeMap<PodKey, Finding>,
}

impl Proxies {
    /// Takes the pods, nodes and pins in. Tells whether any of them is another than before.
    pub(super) fn follow(&mut self, projection: &Projection, form: Form) -> bool {
        let pods = &projection.pods;
        let same = *pods == self.pods;
        if same && self.of_nodes.saw(projection) {
            return false;
        }
        let last = std::mem::replace(&mut self.pods, pods.clone());
        for item in last.diff(pods) {
            match item {
                DiffItem::Add(_, pod) => self.change(None, Some(pod), form),
                DiffItem::Update { old, new } => self.change(Some(old.1), Some(new.1), form),
                DiffItem::Remove(_, pod) => self.change(Some(pod), None, form),
            }
        }
        let old = self.of_nodes.specs.clone();
        self.of_nodes.follow(projection, &self.nodes, &self.callers, form);
        let specs = &self.of_nodes.specs;
        if same && old.is_empty() && specs.is_empty() {
            return false;
        }
        for gone in old.keys().filter(|id| !specs.contains_key(*id)) {
            self.nodes.remove(gone);
        }
        let kept = |id: &Arc<str>, spec| old.get(id).is_some_and(|old| Arc::ptr_eq(old, spec));
        let others = specs.iter().filter(|(id, spec)| !kept(id, spec));
        self.nodes.extend(others.map(|(id, spec)| (id.clone(), spec.clone())));
        true
    }

    /// A pod in the place of what it was before; either may be missing.
    fn change(&mut self, old: Option<&Arc<MeshPod>>, new: Option<&Arc<MeshPod>>, form: Form) {
        let id = |pod: &Arc<MeshPod>| Arc::from(naming::node_id(&pod.key));
        let before = old.and_then(|pod| self.nodes.remove::<Arc<str>>(&id(pod)));
        if let Some(pod) = old {
            self.unsound.remove(&pod.key);
        }
        // First the new one: what both share stays.
        if let Some(pod) = new {
            self.lookouts.come(pod);
            if let Some(finding) = checks::pod(pod) {
                self.unsound.insert(pod.key.clone(), finding);
            } else {
                let spec = self.join(pod, form);
                self.nodes.insert(id(pod), Arc::new(spec));
            }
        }
        if let Some(pod) = old {
            self.lookouts.go(pod, new.map(Arc::as_ref));
        }
        if let Some(spec) = before {
            self.leave(&spec.group);
        }
    }

    /// Has a pod in its group. What is served to it.
    fn join(&mut self, pod: &MeshPod, form: Form) -> NodeSpec {
        let (group, caller) = Caller::of(pod, &self.scopes);
        let spec = sidecar(pod, &group, &caller, form);
        if self.members.begin(group.clone()) {
            if let Some(scope) = &caller.scope
                && self.scoped.begin(scope.words.clone())
            {
                self.scopes.insert(scope.words.clone(), scope.clone());
            }
            self.callers.insert(group, caller);
        }
        spec
    }

    /// Has one pod less in a group.
    fn leave(&mut self, group: &Arc<str>) {
        if !self.members.end(group) {
            return;
        }
        if let Some(scope) = self.callers.remove(group).and_then(|caller| caller.scope)
            && self.scoped.end(&scope.words)
        {
            self.scopes.remove(&scope.words);
        }
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
