//! Mesh services: what the projection makes of a labelled Service.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Endpoint, Protocol, ServiceKey};

/// Which endpoints a proxy uses first, or at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrafficScope {
    /// All of them, by zone, region, then the rest (`PreferClose` and `PreferSameZone` ask for
    /// what is done anyway).
    Cluster,
    /// Those of the proxy's own node before the others (`trafficDistribution: PreferSameNode`).
    PreferNode,
    /// Those of the proxy's own node alone (`internalTrafficPolicy: Local`).
    Node,
}

/// A TCP port of a mesh service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MeshPort {
    /// The Service's port number, unique within the service.
    pub number: u16,
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it is served: sorted, each address and port once.
    pub endpoints: Vec<Endpoint>,
}

/// A Service that holds its key, as the proxies are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MeshService {
    /// The key, which bears the mesh name.
    pub key: ServiceKey,
    /// The Kubernetes Service's own name.
    pub service: Arc<str>,
    /// The ClusterIPs, primary first. Empty for headless and unallocated Services.
    pub cluster_ips: Vec<IpAddr>,
    /// Those of them that no Service before it in the order of claims has too: the addresses of
    /// its chains and the domains of its virtual host.
    pub owned_ips: Vec<IpAddr>,
    /// `clusterIP: None`: an authority and a virtual host, but no chain and no mesh name.
    pub headless: bool,
    /// Whether `<name>.<domain>` is this service's.
    pub owns_short_name: bool,
    /// The TCP ports by number, at least one.
    pub ports: Vec<MeshPort>,
    /// The number of the default port: 18081 where the Service has it, else its first.
    pub default_port: u16,
    /// Which endpoints a proxy uses.
    pub scope: TrafficScope,
}

impl MeshService {
    /// The port of a number.
    pub fn port(&self, number: u16) -> Option<&MeshPort> {
        self.ports.iter().find(|port| port.number == number)
    }

    /// Whether any port speaks HTTP: then there is a virtual host.
    pub fn has_http(&self) -> bool {
        self.ports.iter().any(|port| port.protocol.is_http())
    }

    /// Whether any port speaks TCP: then there are chains.
    pub fn has_tcp(&self) -> bool {
        self.ports.iter().any(|port| !port.protocol.is_http())
    }

    /// Whether the mesh has a name for it: one that has an address and is not headless.
    pub fn has_mesh_name(&self) -> bool {
        !self.headless && !self.cluster_ips.is_empty()
    }
}
