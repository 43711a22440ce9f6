//! The projection: everything that the proxies are told, before it takes Envoy's form.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use imbl::OrdMap;

use super::{Findings, Locality, MeshPod, MeshService, Pins, PodKey, ServiceKey};

/// What the reconciler makes of all objects, whole and at every change. Parts that did not change
/// are the same allocation as in the projection before, so that what is made of them can be kept; and
/// what differs from the one before is found in the time of the difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Projection {
    /// The services that hold their keys.
    pub services: OrdMap<ServiceKey, Arc<MeshService>>,
    /// The managed pods.
    pub pods: OrdMap<PodKey, Arc<MeshPod>>,
    /// The nodes that are known as objects, with their localities.
    pub nodes: Arc<BTreeMap<Arc<str>, Option<Locality>>>,
    /// The pinned network namespaces, which are no objects; `None` where this process has not seen
    /// their folder.
    pub pins: Option<Arc<Pins>>,
    /// What was found wrong on the way.
    pub findings: Findings,
}

/// The records of mesh-DNS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// IPv4 ClusterIP by key.
    pub v4: BTreeMap<ServiceKey, Ipv4Addr>,
    /// IPv6 ClusterIP by key.
    pub v6: BTreeMap<ServiceKey, Ipv6Addr>,
    /// Key by short name.
    pub short: BTreeMap<Arc<str>, ServiceKey>,
}

impl Projection {
    /// Key by short name, of the services that own theirs and have a mesh name at all.
    pub fn short_names(&self) -> BTreeMap<Arc<str>, ServiceKey> {
        let owners = self.services.values().filter(|s| s.owns_short_name && s.has_mesh_name());
        owners.map(|s| (s.key.name.clone(), s.key.clone())).collect()
    }

    /// The records of mesh-DNS, of all services.
    pub fn records(&self) -> Records {
        Records::of(self.services.values().map(Arc::as_ref))
    }
}

impl Records {
    /// The records of some services, in the order of their keys: key to ClusterIPs and short name
    /// to key. Headless and unallocated Services have none.
    pub fn of<'a>(services: impl Iterator<Item = &'a MeshService>) -> Self {
        let mut records = Self::default();
        for service in services.filter(|s| s.has_mesh_name()) {
            if service.owns_short_name {
                records.short.insert(service.key.name.clone(), service.key.clone());
            }
            for ip in &service.cluster_ips {
                match ip {
                    IpAddr::V4(ip) => {
                        records.v4.entry(service.key.clone()).or_insert(*ip);
                    }
                    IpAddr::V6(ip) => {
                        records.v6.entry(service.key.clone()).or_insert(*ip);
                    }
                }
            }
        }
        records
    }
}
