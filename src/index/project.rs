//! The projection: from every labelled Service and managed pod, all at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claims::{self, Holder};
use super::endpoints::{self, Surroundings};
use super::{Id, Index, ObjectKind, Report, advice};
use crate::model::{
    Finding, MeshPod, MeshPort, MeshService, Place, PodKey, Projection, Reason, ServiceKey,
};

/// The mesh's own port: the default one of a Service that has it.
const MESH_PORT: u16 = 18081;

impl Index {
    /// Makes the whole projection. What equals its form in `previous` is that very allocation.
    pub fn project(&self, previous: Option<&Projection>) -> Projection {
        let mut findings = self.of_reading();
        let around = Surroundings::new(self);
        let holders = claims::settle(&self.services, &self.settings, &mut findings);
        let services = holders.into_iter().map(|(key, holder)| {
            let service = self.service(&key, &holder, &around);
            advice::service(&service, &holder.facts, &self.settings, &mut findings);
            let old = previous.and_then(|previous| previous.services.get(&key));
            (key, share(old, service))
        });
        let services: BTreeMap<_, _> = services.collect();
        let pods = self.pods(&around, previous);
        self.unmanaged(&mut findings);
        findings.sort();
        findings.dedup();
        Projection { services, pods, findings }
    }

    fn service(&self, key: &ServiceKey, holder: &Holder, around: &Surroundings<'_>) -> MeshService {
        let facts = &holder.facts;
        let name = (facts.object.namespace.clone(), facts.object.name.clone());
        let slices: Vec<_> =
            self.slices.get(&name).into_iter().flatten().map(|(_, slice)| &*slice.0).collect();
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

    fn pods(
        &self,
        around: &Surroundings<'_>,
        previous: Option<&Projection>,
    ) -> BTreeMap<PodKey, Arc<MeshPod>> {
        let managed = self.pods.values().filter(|pod| {
            pod.managed == Some(true) && !self.settings.never_touches(&pod.object.namespace)
        });
        let pods = managed.map(|pod| {
            let key = PodKey::new(pod.object.namespace.clone(), pod.object.name.clone());
            let mesh_pod = MeshPod {
                key: key.clone(),
                place: Place {
                    node: pod.node.clone(),
                    locality: around.of_node(pod.node.as_ref()),
                },
                ipv6: pod.ips.iter().any(std::net::IpAddr::is_ipv6),
                upstreams: pod.upstreams.clone(),
            };
            let old = previous.and_then(|previous| previous.pods.get(&key));
            (key, share(old, mesh_pod))
        });
        pods.collect()
    }

    /// What was wrong with the objects themselves. Objects of namespaces never touched, and slices
    /// of Services that are not captured, are nobody's concern here; but a labelled Service in
    /// such a namespace is, since its label does nothing.
    fn of_reading(&self) -> Vec<Finding> {
        let touched = |id: &Id| !self.settings.never_touches(&id.namespace);
        let own = self.findings.iter().filter(|(id, _)| touched(id)).flat_map(|(_, found)| found);
        let mut findings: Vec<_> = own.cloned().collect();
        for (name, slices) in &self.slices {
            if self.services.contains_key(name) && !self.settings.never_touches(&name.0) {
                findings.extend(slices.values().flat_map(|(_, found)| found).cloned());
            }
        }
        for facts in self.services.values() {
            if self.settings.never_touches(&facts.object.namespace) {
                let mut report = Report::new(facts.object.clone(), facts.origin.clone());
                report.warning(
                    Reason::NotCaptured,
                    "metadata.namespace",
                    format!(
                        "the namespace {} is never touched, so the Service is not captured",
                        facts.object.namespace
                    ),
                    "remove its label aether.io/mesh-service, or move it to another namespace",
                );
                findings.extend(report.into_findings());
            }
        }
        findings
    }

    /// Pods without a label of their own in namespaces whose label puts new pods into the mesh.
    fn unmanaged(&self, findings: &mut Vec<Finding>) {
        let managed = |namespace: &Arc<str>| self.namespaces.get(namespace) == Some(&true);
        for pod in self.pods.values() {
            let namespace = &pod.object.namespace;
            let left_out = pod.managed.is_none() && managed(namespace);
            if left_out && !self.settings.never_touches(namespace) {
                let mut report = Report::new(pod.object.clone(), pod.origin.clone());
                report.warning(
                    Reason::Unmanaged,
                    "metadata.labels[aether.io/managed]",
                    format!("its namespace {namespace} is in the mesh, but the pod has no label of its own and is not"),
                    "make the pod anew, so that admission labels it; or label it aether.io/managed=false where it is to stay out",
                );
                findings.extend(report.into_findings());
            }
        }
    }

    /// Whether an object of this kind and name is known, for messages about one that is missed.
    pub fn knows(&self, id: &Id) -> bool {
        let name = (id.namespace.clone(), id.name.clone());
        match id.kind {
            ObjectKind::Namespace => self.namespaces.contains_key(&id.name),
            ObjectKind::Node => self.nodes.contains_key(&id.name),
            ObjectKind::Service => self.services.contains_key(&name),
            ObjectKind::Pod => self.pods.contains_key(&name),
            ObjectKind::ServiceAccount | ObjectKind::EndpointSlice => false,
        }
    }
}

/// The old allocation where it equals the new value.
fn share<T: PartialEq>(old: Option<&Arc<T>>, new: T) -> Arc<T> {
    match old {
        Some(old) if **old == new => old.clone(),
        _ => Arc::new(new),
    }
}
