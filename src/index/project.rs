//! The projection: from every labelled Service and managed pod, all at once.
//!
//! It is a function of the facts alone. The memo holds what was made last, so that only what may
//! have changed is made anew; a test compares it with a projection made from nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::claims::{self, Holder};
use super::endpoints::{self, Surroundings};
use super::facts::PodFacts;
use super::store::Name;
use super::upstreams::Missing;
use super::{Index, Report, advice};
use crate::model::{
    Finding, Locality, MeshPod, MeshPort, MeshService, Place, PodKey, Projection, Reason,
    ServiceKey,
};

/// The mesh's own port: the default one of a Service that has it.
const MESH_PORT: u16 = 18081;

/// What the last projection was made of.
#[derive(Debug, Default)]
pub(super) struct Memo {
    holders: BTreeMap<ServiceKey, Holder>,
    of_claims: Vec<Finding>,
    services: BTreeMap<ServiceKey, Arc<MeshService>>,
    of_services: BTreeMap<ServiceKey, Vec<Finding>>,
    pods: BTreeMap<PodKey, Arc<MeshPod>>,
    of_pods: Vec<Finding>,
    missing: Missing,
    nodes: Arc<BTreeMap<Arc<str>, Option<Locality>>>,
}

impl Index {
    /// Makes the whole projection. What is equal to its form in the last one is that very
    /// allocation.
    pub fn project(&mut self) -> Projection {
        // Moved out for the time of the work; after a panic in it, everything is made anew.
        let mut memo = std::mem::take(&mut self.memo);
        let changed = std::mem::take(&mut self.changed);
        self.changed.everywhere = true;
        self.changed.claims = true;
        self.changed.pods = true;

        let around = Surroundings::new(self, &changed);
        let old_holders = if changed.claims {
            memo.of_claims.clear();
            let holders = claims::settle(&self.services, &self.settings, &mut memo.of_claims);
            Some(std::mem::replace(&mut memo.holders, holders))
        } else {
            None
        };
        let mut came_or_went = BTreeSet::new();
        if let Some(old) = &old_holders {
            for key in old.keys().filter(|key| !memo.holders.contains_key(key)) {
                memo.services.remove(key);
                memo.of_services.remove(key);
                came_or_went.insert(key.clone());
            }
            let came = memo.holders.keys().filter(|key| !old.contains_key(*key));
            came_or_went.extend(came.cloned());
        }
        for (key, holder) in &memo.holders {
            let same = old_holders.as_ref().is_none_or(|old| old.get(key) == Some(holder));
            if same && !changed.concerns(&holder.name()) {
                continue;
            }
            let service = self.service(key, holder, &around);
            let advice = advice::service(&service, &holder.facts, &self.settings);
            if advice.is_empty() {
                memo.of_services.remove(key);
            } else {
                memo.of_services.insert(key.clone(), advice);
            }
            share(&mut memo.services, key, service);
        }
        // What follows from nodes alone is everywhere.
        if changed.everywhere {
            let nodes = self.nodes.iter().map(|(name, locality)| (name.clone(), locality.clone()));
            memo.nodes = Arc::new(nodes.collect());
        }
        if changed.pods {
            self.pods(&around, &mut memo);
            memo.of_pods = self.unmanaged();
        }
        if changed.pods || !came_or_went.is_empty() {
            memo.missing.follow(self.managed(), &memo.holders, &came_or_went);
        }
        let mut findings = self.of_reading();
        let of_services = memo.of_services.values().flatten();
        let of_pods = memo.of_pods.iter().chain(memo.missing.findings());
        findings.extend(of_services.chain(&memo.of_claims).chain(of_pods).cloned());
        findings.sort();
        findings.dedup();
        let projection = Projection {
            services: memo.services.clone(),
            pods: memo.pods.clone(),
            nodes: memo.nodes.clone(),
            pins: None,
            findings,
        };
        self.memo = memo;
        self.changed = super::changed::Changed::default();
        projection
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

    fn managed(&self) -> impl Iterator<Item = (&Name, &Arc<PodFacts>)> {
        self.pods.iter().filter(|(_, pod)| {
            pod.managed == Some(true) && !self.settings.never_touches(&pod.object.namespace)
        })
    }

    fn pods(&self, around: &Surroundings<'_>, memo: &mut Memo) {
        let mut old = std::mem::take(&mut memo.pods);
        for (_, pod) in self.managed() {
            let key = PodKey::new(pod.object.namespace.clone(), pod.object.name.clone());
            let mesh_pod = MeshPod {
                key: key.clone(),
                uid: pod.uid.clone(),
                place: Place {
                    node: pod.node.clone(),
                    locality: around.of_node(pod.node.as_ref()),
                },
                ipv6: pod.ips.iter().any(IpAddr::is_ipv6),
                service_account: pod.service_account.clone(),
                upstreams: pod.upstreams.clone(),
            };
            if let Some(old) = old.remove(&key) {
                memo.pods.insert(key.clone(), old);
            }
            share(&mut memo.pods, &key, mesh_pod);
        }
    }

    /// What was wrong with the objects themselves. Objects of namespaces never touched, and slices
    /// of Services that are not captured, are nobody's concern here; but a labelled Service in
    /// such a namespace is, since its label does nothing.
    fn of_reading(&self) -> Vec<Finding> {
        let concerns = self.findings.iter().filter(|(id, found)| {
            let captured = |name| self.services.contains_key(name);
            !self.settings.never_touches(&id.namespace)
                && found.service.as_ref().is_none_or(captured)
        });
        concerns.flat_map(|(_, found)| found.findings.iter().cloned()).collect()
    }

    /// Pods without a label of their own in namespaces whose label puts new pods into the mesh.
    fn unmanaged(&self) -> Vec<Finding> {
        let managed = |namespace: &Arc<str>| self.namespaces.get(namespace) == Some(&true);
        let left_out = self.pods.values().filter(|pod| {
            let namespace = &pod.object.namespace;
            pod.managed.is_none() && managed(namespace) && !self.settings.never_touches(namespace)
        });
        left_out
            .flat_map(|pod| {
                let mut report = Report::new(pod.object.clone(), pod.origin.clone());
                report.warning(
                    Reason::Unmanaged,
                    "metadata.labels[aether.io/managed]",
                    format!("its namespace {} is in the mesh, but the pod has no label of its own and is not", pod.object.namespace),
                    "make the pod anew, so that admission labels it; or label it aether.io/managed=false where it is to stay out",
                );
                report.into_findings()
            })
            .collect()
    }
}

/// Puts a value in, unless its equal is there already.
fn share<K: Ord + Clone, T: PartialEq>(map: &mut BTreeMap<K, Arc<T>>, key: &K, new: T) {
    if map.get(key).is_none_or(|old| **old != new) {
        map.insert(key.clone(), Arc::new(new));
    }
}
