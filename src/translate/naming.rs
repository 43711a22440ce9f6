//! The names of resources, chains and lenses, as the contract fixes them.

use std::net::IpAddr;

use crate::model::{Locality, MeshNames, MeshService, PodKey, ServiceKey};
use crate::xds::Lens;

/// The port of the capture listener, TCP.
pub const CAPTURE_PORT: u16 = 18001;
/// The port of the per-pod DNS listener, UDP.
pub const DNS_PORT: u16 = 18053;
/// The port that every mesh Service answers on.
pub const MESH_PORT: u16 = 18081;
/// `SO_MARK` of every upstream socket of a node proxy.
pub const NODE_PROXY_MARK: i64 = 0xae7e;
/// The cluster of what is no mesh service, in redirect-all mode.
pub const PASSTHROUGH: &str = "passthrough_original_dst";
/// A cluster that never exists: what is sent to it is closed.
pub const NOWHERE: &str = "no_such_cluster";
/// The route configuration of the qualified names.
pub const ROUTES: &str = "cap_http";
/// The catch-all virtual host. No service is named so: their names hold a dot.
pub const ANY: &str = "any";
/// The name of the chain that ends loops.
pub const CHAIN_SELF: &str = "cap_self";
/// The name of the chain for HTTP to any address.
pub const CHAIN_HTTP: &str = "cap_http";
/// The name of the chain for everything else, in redirect-all mode.
pub const CHAIN_DEFAULT: &str = "default";
/// The lens of node proxies, whose upstream sockets are marked.
pub const NODE_PROXY_LENS: &str = "node-proxy";
/// The lens of state-of-the-world streams, which get virtual hosts inside their routes.
pub const SOTW_LENS: &str = "sotw";

/// The id of the sidecar of a pod.
pub fn node_id(pod: &PodKey) -> String {
    format!("pod/{pod}")
}

/// The id of the proxy of a node.
pub fn node_proxy_id(node: &str) -> String {
    format!("node/{node}")
}

/// The capture listener of a pod. Kubernetes names hold no `_`, so the name is unambiguous.
pub fn capture_listener(pod: &PodKey) -> String {
    format!("capture_{}_{}", pod.namespace, pod.name)
}

/// The DNS listener of a pod.
pub fn dns_listener(pod: &PodKey) -> String {
    format!("dns_{}_{}", pod.namespace, pod.name)
}

/// The route configuration of the pods of a namespace.
pub fn routes_of(namespace: &str) -> String {
    format!("{ROUTES}.{namespace}")
}

/// The route configuration of a pod that lists its upstreams. No namespace holds a dot, so the name
/// is unambiguous.
pub fn routes_of_pod(pod: &PodKey) -> String {
    format!("{ROUTES}.{}.{}", pod.namespace, pod.name)
}

/// A service's virtual host, below the name of the route configuration and a slash.
pub fn virtual_host(key: &ServiceKey) -> String {
    format!("{}.{}", key.name, key.namespace)
}

/// The HTTP cluster of a port of a service. The default port's bears no number. The prefix keeps
/// it from being named like a host, which `dns_filter` would answer.
pub fn http_cluster(names: &MeshNames, service: &MeshService, port: u16) -> String {
    let host = names.qualified(&service.key);
    if port == service.default_port {
        format!("http:{host}")
    } else {
        format!("http:{host}:{port}")
    }
}

/// The TCP cluster of a port of a service, before the colon and the port.
pub fn tcp_cluster_stem(names: &MeshNames, key: &ServiceKey) -> String {
    format!("tcp:{}", names.qualified(key))
}

/// Whether a resource of this name is made of the service alone.
pub fn bears(names: &MeshNames, service: &MeshService, resource: &str) -> bool {
    let key = &service.key;
    let numbered = |stem: &str| {
        let rest = resource.strip_prefix(stem).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let http = format!("http:{}", names.qualified(key));
    let host = resource.rsplit_once('/').map(|(_, host)| host);
    resource == http
        || numbered(&http)
        || numbered(&tcp_cluster_stem(names, key))
        || numbered(&key.to_string())
        || host == Some(&virtual_host(key))
}

/// The load assignment of a port of a service.
pub fn assignment(key: &ServiceKey, port: u16) -> String {
    format!("{key}:{port}")
}

/// The TCP chain of a service on one of its addresses.
pub fn tcp_chain(key: &ServiceKey, ip: IpAddr) -> String {
    format!("cap_tcp_{key}_{ip}")
}

/// The chain for bytes that are neither HTTP nor TLS, of a service with both kinds of ports.
pub fn raw_chain(key: &ServiceKey, ip: IpAddr) -> String {
    format!("cap_tcp_{key}_{ip}_raw")
}

/// The HTTP chain of a service with both kinds of ports on one of its addresses.
pub fn http_chain(key: &ServiceKey, ip: IpAddr) -> String {
    format!("cap_http_{key}_{ip}")
}

/// The lens of the proxies of a node.
pub fn node_lens(node: &str) -> Lens {
    format!("node/{node}").into()
}

/// The lens of the proxies of a locality.
pub fn zone_lens(locality: &Locality) -> Lens {
    format!("zone/{}/{}", locality.region, locality.zone).into()
}
