//! The projection: from every labelled Service and managed pod, all at once.
//!
//! It is a function of the facts alone. The memo holds what was made last, so that only what may
//! have changed is made anew; a test compares it with a projection made from nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use imbl::OrdMap;

use super::changed::Changed;
use super::claims::{Claims, Holder, key_of};
use super::endpoints::{self, Regions, Surroundings};
use super::facts::PodFacts;
use super::store::Name;
use super::told::Told;
use super::upstreams::Missing;
use super::{Id, Index, Report, advice};
use crate::model::{
    Finding, Findings, Locality, MeshPod, MeshPort, MeshService, Place, PodKey, Projection, Reason,
    ServiceKey,
};

/// The mesh's own port: the default one of a Service that has it.
const MESH_PORT: u16 = 18081;

/// What the last projection was made of.
#[derive(Debug, Default)]
pub(super) struct Memo {
    claims: Claims,
    services: OrdMap<ServiceKey, Arc<MeshService>>,
    pods: OrdMap<PodKey, Arc<MeshPod>>,
    nodes: Arc<BTreeMap<Arc<str>, Option<Locality>>>,
    regions: Regions,
    missing: Missing,
    of_services: Told<ServiceKey>,
    of_pods: Told<Name>,
    of_reading: Told<Id>,
    findings: Findings,
}

impl Index {
    /// Makes the whole projection. What is equal to its form in the last one is that very
    /// allocation.
    pub fn project(&mut self) -> Projection {
        // Moved out for the time of the work; after a panic in it, everything is made anew.
        let mut memo = std::mem::take(&mut self.memo);
        let mut changed = std::mem::replace(&mut self.changed, Changed::lost());
        if changed.lost {
            changed = Changed::everything(self);
        }
        if changed.nodes {
            let nodes = self.nodes.iter().map(|(name, locality)| (name.clone(), locality.clone()));
            memo.nodes = Arc::new(nodes.collect());
            memo.regions = endpoints::regions(self.nodes.values().flatten());
        }
        let came_or_went = self.follow_services(&changed, &mut memo);
        self.follow_pods(&changed, &mut memo);
        let pods = changed.pods.iter().map(|name| (name, self.managed(name)));
        memo.missing.follow(pods, memo.claims.holders(), &came_or_went, &mut memo.findings);
        for id in &changed.read {
            memo.of_reading.set(id, self.of_reading(id), &mut memo.findings);
        }
        let projection = Projection {
            services: memo.services.clone(),
            pods: memo.pods.clone(),
            nodes: memo.nodes.clone(),
            pins: None,
            findings: memo.findings.clone(),
        };
        self.memo = memo;
        self.changed = Changed::default();
        projection
    }

    /// Makes the services that may be others. Returns the keys that came or went.
    fn follow_services(&self, changed: &Changed, memo: &mut Memo) -> BTreeSet<ServiceKey> {
        let Memo { claims, services, of_services, findings, regions, .. } = memo;
        let mut keys = claims.follow(&self.services, &changed.claims, &self.settings, findings);
        keys.extend(self.concerned(changed, claims));
        let around = Surroundings::new(self, regions);
        let mut came_or_went = BTreeSet::new();
        for key in keys {
            let known = services.contains_key(&key);
            let Some(holder) = claims.holders().get(&key) else {
                of_services.set(&key, Vec::new(), findings);
                if services.remove(&key).is_some() {
                    came_or_went.insert(key);
                }
                continue;
            };
            let service = self.service(&key, holder, &around);
            let advice = advice::service(&service, &holder.facts, &self.settings);
            of_services.set(&key, advice, findings);
            share(services, &key, service);
            if !known {
                came_or_went.insert(key);
            }
        }
        came_or_went
    }

    /// The keys of the services whose endpoints may be others.
    fn concerned(&self, changed: &Changed, claims: &Claims) -> BTreeSet<ServiceKey> {
        if changed.nodes {
            return claims.holders().keys().cloned().collect();
        }
        let of_slices = changed.services.iter().filter_map(|name| self.services.get(name));
        let in_namespaces = changed.weights.iter().flat_map(|namespace| {
            // The name before all others of the namespace.
            let first: Name = (namespace.clone(), "".into());
            let range = self.services.range((Included(first), Unbounded));
            let of_it = range.take_while(move |(name, _)| name.0 == *namespace);
            of_it.map(|(_, facts)| facts)
        });
        let of_facts = of_slices.chain(in_namespaces).map(|facts| key_of(facts));
        of_facts
            .chain(changed.registry.iter().cloned())
            .filter(|key| claims.holders().contains_key(key))
            .collect()
    }

    fn service(&self, key: &ServiceKey, holder: &Holder, around: &Surroundings<'_>) -> MeshService {
        let facts = &holder.facts;
        let slices: Vec<_> =
            self.slices.get(&holder.name()).into_iter().flat_map(BTreeMap::values).collect();
        let first = facts.ports.first().map_or(MESH_PORT, |port| port.number);
        let mesh = facts.ports.iter().find(|port| port.number == MESH_PORT);
        let of_ports = endpoints::of_service(facts, &slices, around);
        let ports = facts.ports.iter().zip(of_ports);
        let mut ports: Vec<_> = ports
            .map(|(port, endpoints)| MeshPort {
                number: port.number,
                protocol: port.protocol,
                endpoints,
            })
            .collect();
        ports.sort_by_key(|port| port.number);
        MeshService {
            key: key.clone(),
            service: facts.object.name.clone(),
            cluster_ips: facts.cluster_ips.clone(),
            owned_ips: holder.owned_ips.clone(),
            headless: facts.headless,
            owns_short_name: holder.owns_short_name,
            ports,
            default_port: mesh.map_or(first, |port| port.number),
            scope: facts.scope,
        }
    }

    /// A pod that is in the mesh.
    fn managed(&self, name: &Name) -> Option<&Arc<PodFacts>> {
        let pod = self.pods.get(name).filter(|pod| pod.managed == Some(true));
        pod.filter(|pod| !self.settings.never_touches(&pod.object.namespace))
    }

    /// Makes the pods that may be others.
    fn follow_pods(&self, changed: &Changed, memo: &mut Memo) {
        let Memo { pods, of_pods, findings, regions, .. } = memo;
        let around = Surroundings::new(self, regions);
        let moved = changed.nodes.then(|| self.pods.keys()).into_iter().flatten();
        for name in changed.pods.iter().chain(moved) {
            let key = PodKey::new(name.0.clone(), name.1.clone());
            match self.managed(name) {
                Some(pod) => share(pods, &key, mesh_pod(&key, pod, &around)),
                None => {
                    pods.remove(&key);
                }
            }
        }
        let left_out = changed.namespaces.iter().flat_map(|namespace| {
            let first: Name = (namespace.clone(), "".into());
            let range = self.pods.range((Included(first), Unbounded)).map(|(name, _)| name);
            range.take_while(move |name| name.0 == *namespace)
        });
        for name in changed.pods.iter().chain(left_out) {
            let found = self.pods.get(name).map(|pod| self.unmanaged(pod)).unwrap_or_default();
            of_pods.set(name, found, findings);
        }
    }

    /// What was wrong with an object itself. Objects of namespaces never touched, and slices of
    /// Services that are not captured, are nobody's concern here; but a labelled Service in such a
    /// namespace is, since its label does nothing.
    fn of_reading(&self, id: &Id) -> Vec<Finding> {
        let found = self.findings.get(id).filter(|found| {
            let captured = |name| self.services.contains_key(name);
            !self.settings.never_touches(&id.namespace)
                && found.service.as_ref().is_none_or(captured)
        });
        found.map(|found| found.findings.clone()).unwrap_or_default()
    }

    /// What is found of a pod without a label of its own in a namespace whose label puts new pods into
    /// the mesh.
    fn unmanaged(&self, pod: &PodFacts) -> Vec<Finding> {
        let namespace = &pod.object.namespace;
        let mut report = Report::new(pod.object.clone(), pod.origin.clone());
        if pod.managed.is_none()
            && self.namespaces.get(namespace) == Some(&true)
            && !self.settings.never_touches(namespace)
        {
            report.warning(
                Reason::Unmanaged,
                "metadata.labels[aether.io/managed]",
                format!("its namespace {namespace} is in the mesh, but the pod has no label of its own and is not"),
                "make the pod anew, so that admission labels it; or label it aether.io/managed=false where it is to stay out",
            );
        }
        report.into_findings()
    }
}

fn mesh_pod(key: &PodKey, pod: &PodFacts, around: &Surroundings<'_>) -> MeshPod {
    MeshPod {
        key: key.clone(),
        uid: pod.uid.clone(),
        place: Place { node: pod.node.clone(), locality: around.of_node(pod.node.as_ref()) },
        ipv6: pod.ips.iter().any(IpAddr::is_ipv6),
        service_account: pod.service_account.clone(),
        upstreams: pod.upstreams.clone(),
    }
}

/// Puts a value in, unless its equal is there already.
fn share<K: Ord + Clone, T: PartialEq>(map: &mut OrdMap<K, Arc<T>>, key: &K, new: T) {
    if map.get(key).is_none_or(|old| **old != new) {
        map.insert(key.clone(), Arc::new(new));
    }
}
