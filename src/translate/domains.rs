//! The spellings of a service's host.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::{MeshNames, MeshService};

/// The domains of a service in every table, sorted, each with and without a trailing dot but for
/// addresses. A Service without a mesh name (headless, unallocated) keeps those of Kubernetes.
pub(super) fn qualified(names: &MeshNames, service: &MeshService) -> BTreeSet<String> {
    let (own, namespace) = (&service.service, &service.key.namespace);
    let mut spellings = vec![
        names.authority(service),
        format!("{own}.{namespace}.svc"),
        format!("{own}.{namespace}"),
    ];
    if service.has_mesh_name() {
        spellings.push(names.qualified(&service.key));
        if service.owns_short_name {
            spellings.push(names.short(&service.key.name));
        }
    }
    let dotted = spellings.iter().map(|name| format!("{name}.")).collect::<Vec<_>>();
    let addresses = service.owned_ips.iter().map(|ip| address(*ip));
    spellings.into_iter().chain(dotted).chain(addresses).collect()
}

/// The bare name, which means this service to callers of its own namespace alone.
pub(super) fn bare(service: &MeshService) -> [String; 2] {
    [service.service.to_string(), format!("{}.", service.service)]
}

/// An address as it stands in `:authority`.
fn address(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}
