//! Where the ports of a Service are served: by its slices, or by the registry of managed pods.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::facts::{NodeFacts, PodFacts, PortFacts, ServiceFacts, SliceEndpoint, SliceFacts};
use super::pods;
use super::store::{Index, Name};
use crate::model::{Endpoint, Locality, ServiceKey};

/// The region of a zone, where the nodes agree on one.
pub(super) type Regions = HashMap<Arc<str>, Option<Arc<str>>>;

/// The pods of the registry by the namespace and ServiceAccount, which are the key of the service that
/// they serve, and by their own names.
pub(super) type Serving = HashMap<ServiceKey, BTreeMap<Arc<str>, Arc<PodFacts>>>;

/// What the nodes say of regions.
pub(super) fn regions<'a>(nodes: impl Iterator<Item = &'a Locality>) -> Regions {
    let mut regions = Regions::new();
    for node in nodes {
        let region = Some(node.region.clone());
        let known = regions.entry(node.zone.clone()).or_insert_with(|| region.clone());
        if *known != region {
            *known = None;
        }
    }
    regions
}

/// What is looked up for every endpoint.
pub(super) struct Surroundings<'a> {
    nodes: &'a HashMap<Arc<str>, NodeFacts>,
    pods: &'a BTreeMap<Name, Arc<PodFacts>>,
    regions: &'a Regions,
    serving: &'a Serving,
}

impl<'a> Surroundings<'a> {
    /// Of an index, with the regions of its nodes.
    pub(super) fn new(index: &'a Index, regions: &'a Regions) -> Self {
        Self { nodes: &index.nodes, pods: &index.pods, regions, serving: &index.serving }
    }

    /// By the node's labels; with the node missing, or without a zone, by the slice's own zone.
    fn locality(&self, node: Option<&Arc<str>>, zone: Option<&Arc<str>>) -> Option<Locality> {
        let of_node = node.and_then(|node| self.nodes.get(node)).and_then(Option::as_ref);
        match (of_node, zone) {
            (Some(known), Some(zone)) if known.zone.is_empty() => {
                Some(Locality { region: known.region.clone(), zone: zone.clone() })
            }
            (Some(known), _) => Some(known.clone()),
            (None, Some(zone)) => {
                let region = self.regions.get(zone).cloned().flatten().unwrap_or_default();
                Some(Locality { region, zone: zone.clone() })
            }
            (None, None) => None,
        }
    }

    /// The locality of a node by its own labels.
    pub(super) fn of_node(&self, node: Option<&Arc<str>>) -> Option<Locality> {
        self.locality(node, None)
    }
}

/// The endpoints of each port, in the order of `service.ports`: sorted, each address and port
/// once, all of the Service's primary family.
pub(super) fn of_service(
    service: &ServiceFacts,
    slices: &[&SliceFacts],
    around: &Surroundings<'_>,
) -> Vec<Vec<Endpoint>> {
    let by_registry = service.generated || (!service.selector && slices.is_empty());
    let pods = if by_registry { registry(service, around) } else { Vec::new() };
    let of_port = |port: &PortFacts| {
        let all = if by_registry { pods.clone() } else { of_slices(service, port, slices, around) };
        unique(all, service.primary_ipv6)
    };
    service.ports.iter().map(of_port).collect()
}

fn of_slices(
    service: &ServiceFacts,
    port: &PortFacts,
    slices: &[&SliceFacts],
    around: &Surroundings<'_>,
) -> Vec<Endpoint> {
    let namespace = &service.object.namespace;
    let mut all = Vec::new();
    for slice in slices {
        let numbers = slice.ports.iter().filter(|(name, _)| *name == port.name);
        for (_, number) in numbers {
            all.extend(slice.endpoints.iter().map(|one| endpoint(one, *number, namespace, around)));
        }
    }
    all
}

fn endpoint(
    one: &SliceEndpoint,
    port: u16,
    namespace: &Arc<str>,
    around: &Surroundings<'_>,
) -> Endpoint {
    let pod = one.pod.as_ref().and_then(|pod| around.pods.get(&(namespace.clone(), pod.clone())));
    Endpoint {
        address: one.address,
        port,
        health: one.health,
        weight: pod.map_or(pods::WEIGHT, |pod| pods::weight(pod)),
        locality: around.locality(one.node.as_ref(), one.zone.as_ref()),
        node: one.node.clone(),
    }
}

fn registry(service: &ServiceFacts, around: &Surroundings<'_>) -> Vec<Endpoint> {
    let account = ServiceKey::new(service.object.namespace.clone(), service.mesh_name.clone());
    let pods = around.serving.get(&account).into_iter().flat_map(BTreeMap::values);
    pods.flat_map(|pod| {
        let one = |address: IpAddr| Endpoint {
            address,
            port: pod.port.unwrap_or(service.workload_port),
            health: pod.health,
            weight: pod.weight,
            locality: around.of_node(pod.node.as_ref()),
            node: pod.node.clone(),
        };
        // The first address of each family: which family counts is decided for all at once.
        let v4 = pod.ips.iter().copied().find(IpAddr::is_ipv4);
        let v6 = pod.ips.iter().copied().find(IpAddr::is_ipv6);
        v4.into_iter().chain(v6).map(one).collect::<Vec<_>>()
    })
    .collect()
}

/// Keeps the primary family (both would count each pod twice) and one of what stands several
/// times, the fittest. A Service that does not say its family has that of its endpoints, IPv4
/// where there are both.
fn unique(mut all: Vec<Endpoint>, primary_ipv6: Option<bool>) -> Vec<Endpoint> {
    let ipv6 = primary_ipv6.unwrap_or_else(|| !all.iter().any(|one| one.address.is_ipv4()));
    all.retain(|one| one.address.is_ipv6() == ipv6);
    all.sort();
    all.dedup_by(|next, kept| (next.address, next.port) == (kept.address, kept.port));
    all
}
