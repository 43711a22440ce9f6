//! A Service with what serves it.

use std::net::IpAddr;

use anyhow::{Context, Result};

use super::Object;

/// A port of a Service: its number, its `appProtocol` (empty: none), and where the endpoint serves it.
pub type ServedPort<'a> = (u16, &'a str, u16);

/// A mesh Service `<namespace>/<name>` with these ClusterIPs (the first one's family is the primary), and its slice
/// with one endpoint. The ports are named `p<number>`.
pub fn served(
    key: &str,
    cluster_ips: &[&str],
    ports: &[ServedPort<'_>],
    endpoint: IpAddr,
) -> Result<[Object; 2]> {
    let (namespace, name) = key.split_once('/').context("a key is namespace/name")?;
    let (first, more) = cluster_ips.split_first().context("a Service has a ClusterIP, or None")?;
    let mut service = Object::service(namespace, name, first);
    for ip in more {
        service = service.also(ip);
    }
    let mut slice = Object::slice(namespace, name, "1", endpoint.is_ipv6()).endpoint(endpoint);
    for (number, protocol, at) in ports {
        let name = format!("p{number}");
        service = service.port(&name, *number, protocol);
        slice = slice.target(&name, *at);
    }
    Ok([service, slice])
}
