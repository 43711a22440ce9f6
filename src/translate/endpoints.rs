//! Load assignments: the endpoints of a port, as each place in the mesh sees them.
//!
//! What is not fit is left out rather than marked: then a priority's health is whole or absent,
//! and nothing spills over to a farther one while a nearer one serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::socket_address::Protocol;
use envoy_types::pb::envoy::config::core::v3::{HealthStatus, Locality as EnvoyLocality};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint as EnvoyEndpoint, LbEndpoint, LocalityLbEndpoints,
};

use super::naming::{self, node_lens, zone_lens};
use super::proto::{address, encoded, number};
use crate::model::{Endpoint, Health, Locality, MeshPort, MeshService, Place, TrafficScope};
use crate::xds::{Entry, Kind, Lens, Resource};

/// From where the proxies of a projection look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Places {
    /// The localities of the pods.
    pub zones: BTreeSet<Locality>,
    /// The nodes of the pods, with their localities.
    pub nodes: BTreeMap<Arc<str>, Option<Locality>>,
}

impl Places {
    /// Whether the assignments of a service look the same from both.
    pub(super) fn same_for(&self, other: &Self, scope: TrafficScope) -> bool {
        match scope {
            TrafficScope::Cluster => self.zones == other.zones,
            TrafficScope::PreferNode | TrafficScope::Node => self == other,
        }
    }
}

/// The assignments of a service by name, one for each port that a cluster leads to.
pub(super) fn of_service(
    service: &MeshService,
    clusters: &[Resource],
    places: &Places,
) -> Vec<(Arc<str>, Entry)> {
    let needed: BTreeSet<&str> =
        clusters.iter().filter_map(|cluster| cluster.needs().map(AsRef::as_ref)).collect();
    let mut made = Vec::new();
    for port in &service.ports {
        let name: Arc<str> = naming::assignment(&service.key, port.number).into();
        if needed.contains(&*name) {
            let entry = entry(&name, port, service.scope, places);
            made.push((name, entry));
        }
    }
    made
}

fn entry(name: &Arc<str>, port: &MeshPort, scope: TrafficScope, places: &Places) -> Entry {
    let form = |place: &Place| resource(name, port, scope, place);
    let other = form(&Place::default());
    let mut forms: BTreeMap<Lens, Entry> = BTreeMap::new();
    if scope != TrafficScope::Node {
        for zone in &places.zones {
            let seen = form(&Place { node: None, locality: Some(zone.clone()) });
            // Who finds no form of its own gets the other one.
            if seen.version() != other.version() {
                forms.insert(zone_lens(zone), Entry::Plain(seen));
            }
        }
    }
    if scope != TrafficScope::Cluster {
        let nodes: BTreeSet<_> = port.endpoints.iter().filter_map(|e| e.node.as_ref()).collect();
        for (node, locality) in
            nodes.into_iter().filter_map(|node| places.nodes.get_key_value(node))
        {
            let seen = form(&Place { node: Some(node.clone()), locality: locality.clone() });
            forms.insert(node_lens(node), Entry::Plain(seen));
        }
    }
    if forms.is_empty() {
        return Entry::Plain(other);
    }
    Entry::ByLens { forms: Arc::new(forms), other: Box::new(Entry::Plain(other)) }
}

fn resource(name: &Arc<str>, port: &MeshPort, scope: TrafficScope, place: &Place) -> Resource {
    let mut groups: BTreeMap<(u8, Locality), BTreeSet<&Endpoint>> = BTreeMap::new();
    for endpoint in fit(&port.endpoints, scope, place) {
        // An unknown locality is one without a name.
        let locality = endpoint.locality.clone().unwrap_or_else(|| Locality::new("", ""));
        groups.entry((tier(endpoint, scope, place), locality)).or_default().insert(endpoint);
    }
    let tiers: BTreeSet<u8> = groups.keys().map(|(tier, _)| *tier).collect();
    let priorities: BTreeMap<u8, u32> = tiers.into_iter().zip(0..).collect();
    let groups = groups.into_iter().map(|((tier, locality), endpoints)| LocalityLbEndpoints {
        locality: Some(EnvoyLocality {
            region: locality.region.to_string(),
            zone: locality.zone.to_string(),
            ..EnvoyLocality::default()
        }),
        lb_endpoints: endpoints.into_iter().map(host).collect(),
        priority: priorities.get(&tier).copied().unwrap_or_default(),
        ..LocalityLbEndpoints::default()
    });
    let message = ClusterLoadAssignment {
        cluster_name: name.to_string(),
        endpoints: groups.collect(),
        ..ClusterLoadAssignment::default()
    };
    Resource::new(Kind::Endpoints, name.clone(), encoded(&message), None)
}

/// The endpoints that a proxy there sends to: of those that it may use the ready ones, or, where
/// nothing is ready, those that serve while they terminate.
fn fit<'a>(
    endpoints: &'a [Endpoint],
    scope: TrafficScope,
    place: &Place,
) -> impl Iterator<Item = &'a Endpoint> {
    let may = move |endpoint: &&Endpoint| {
        let local = place.node.is_some() && endpoint.node == place.node;
        endpoint.port != 0 && (scope != TrafficScope::Node || local)
    };
    let ready = endpoints.iter().filter(may).any(|e| e.health == Health::Ready);
    let wanted = if ready { Health::Ready } else { Health::Draining };
    let chosen: Vec<_> = endpoints.iter().filter(may).filter(|e| e.health == wanted).collect();
    chosen.into_iter()
}

/// How far an endpoint is from a proxy: its node where that is asked for, its zone, its region,
/// the rest. All are equally far where the proxy's own locality is unknown.
fn tier(endpoint: &Endpoint, scope: TrafficScope, place: &Place) -> u8 {
    match scope {
        TrafficScope::Node => return 0,
        TrafficScope::PreferNode if place.node.is_some() && endpoint.node == place.node => {
            return 0;
        }
        TrafficScope::PreferNode | TrafficScope::Cluster => {}
    }
    let (Some(own), Some(its)) = (&place.locality, &endpoint.locality) else {
        return 3;
    };
    let same_region = own.region == its.region && !own.region.is_empty();
    // Where a node is missing its slice still tells the zone, whose region is then unknown.
    let compatible = same_region || own.region.is_empty() || its.region.is_empty();
    if own.zone == its.zone && !own.zone.is_empty() && compatible {
        1
    } else if same_region {
        2
    } else {
        3
    }
}

fn host(endpoint: &Endpoint) -> LbEndpoint {
    let to = (endpoint.address, endpoint.port).into();
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(EnvoyEndpoint {
            address: Some(address(to, Protocol::Tcp)),
            ..EnvoyEndpoint::default()
        })),
        health_status: HealthStatus::Healthy.into(),
        // 1 is what an endpoint without a weight has.
        load_balancing_weight: (endpoint.weight > 1).then(|| number(endpoint.weight)).flatten(),
        ..LbEndpoint::default()
    }
}
