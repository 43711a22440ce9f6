//! The proxies: what tells one pod's view from another's.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;

use super::endpoints::Places;
use super::naming::{
    self, CAPTURE_PORT, DNS_PORT, capture_listener, dns_listener, node_lens, zone_lens,
};
use super::scope::{Caller, Scopes};
use super::{checks, listener};
use crate::model::{Finding, MeshPod, PodKey};
use crate::xds::{Kind, NodeSpec, Own};

/// The key of the stem of the DNS listeners of those who see the whole mesh.
pub(super) const DNS_STEM: &str = "dns";

/// The proxies of the pods that were last seen.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    pods: BTreeMap<PodKey, Arc<MeshPod>>,
    /// What is served to each.
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
    /// Takes the pods in. Tells whether any of them is another than before.
    pub(super) fn follow(&mut self, pods: &BTreeMap<PodKey, Arc<MeshPod>>, dns: bool) -> bool {
        let same = |a: &Arc<MeshPod>, b: &Arc<MeshPod>| Arc::ptr_eq(a, b) || a == b;
        if pods.len() == self.pods.len()
            && pods.iter().zip(&self.pods).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        {
            return false;
        }
        let (mut nodes, mut callers) = (BTreeMap::new(), BTreeMap::new());
        let mut scopes = Scopes::new();
        self.findings.clear();
        for (key, pod) in pods {
            if let Some(finding) = checks::pod(pod) {
                self.findings.push(finding);
                continue;
            }
            let id: Arc<str> = naming::node_id(key).into();
            let kept = self.pods.get(key).filter(|old| same(old, pod));
            let kept = kept.and_then(|_| self.nodes.get(&id));
            let kept = kept.and_then(|node| self.keep(node, &mut callers, &mut scopes));
            let spec = kept.unwrap_or_else(|| {
                let (group, caller) = Caller::of(pod, &self.scopes, &mut scopes);
                let spec = node(pod, &group, &caller, dns);
                callers.entry(group).or_insert(caller);
                Arc::new(spec)
            });
            nodes.insert(id, spec);
        }
        let places = Places::of(pods.values().map(Arc::as_ref));
        if *self.places != places {
            self.places = Arc::new(places);
        }
        self.pods.clone_from(pods);
        self.nodes = Arc::new(nodes);
        self.callers = callers;
        self.scopes = scopes;
        true
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
fn node(pod: &MeshPod, group: &Arc<str>, caller: &Caller, dns: bool) -> NodeSpec {
    let own = |name: String, port, protocol, stem: Arc<str>| Own {
        kind: Kind::Listener,
        head: listener::head(&name, port, protocol, pod.ipv6),
        name: name.into(),
        stem,
    };
    let capture = capture_listener(&pod.key);
    let mut listeners = vec![own(capture, CAPTURE_PORT, Protocol::Tcp, caller.stem.clone())];
    if dns {
        let stem = caller.scope.as_ref().map_or(DNS_STEM.into(), |scope| scope.dns_stem.clone());
        listeners.push(own(dns_listener(&pod.key), DNS_PORT, Protocol::Udp, stem));
    }
    let node = pod.place.node.as_deref().map(node_lens);
    let zone = pod.place.locality.as_ref().map(zone_lens);
    NodeSpec {
        group: group.clone(),
        identity: Some(pod.service_account.clone()),
        lenses: node.into_iter().chain(zone).collect(),
        own: listeners,
    }
}
