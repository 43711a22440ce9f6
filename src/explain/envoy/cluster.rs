//! Clusters and load assignments: whom a request or connection is sent to.

use std::net::{IpAddr, SocketAddr};

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::config::core::v3::address::Address as Form;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{Address, HealthStatus};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
};
use prost::Message;

use super::resources::Undecodable;
use crate::explain::Target;

/// Where a cluster's endpoints come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whither {
    /// From this load assignment.
    Assignment(String),
    /// It is the address that the client asked for.
    OriginalDestination,
}

/// What is spoken to the endpoints of an HTTP cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// What the client speaks.
    AsClient,
}

/// A cluster, as far as it decides anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Where its endpoints come from.
    pub whither: Whither,
    /// What is spoken to them; `None` for what is no HTTP cluster.
    pub http: Option<Http>,
}

impl Upstream {
    /// What a cluster says.
    pub fn of(cluster: &Cluster) -> Result<Self, Undecodable> {
        let wrong = |why: String| Undecodable::new(format!("the cluster {}", cluster.name), why);
        let kind = match cluster.cluster_discovery_type {
            Some(ClusterDiscoveryType::Type(kind)) => DiscoveryType::try_from(kind).ok(),
            _ => None,
        };
        let whither = match (kind, &cluster.eds_cluster_config) {
            (Some(DiscoveryType::OriginalDst), _) => Whither::OriginalDestination,
            (Some(DiscoveryType::Eds), Some(eds)) if !eds.service_name.is_empty() => {
                Whither::Assignment(eds.service_name.clone())
            }
            (Some(DiscoveryType::Eds), _) => Whither::Assignment(cluster.name.clone()),
            _ => return Err(wrong("its endpoints come from elsewhere".to_owned())),
        };
        let options = cluster
            .typed_extension_protocol_options
            .get("envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
        let options = options.map(|any| HttpProtocolOptions::decode(any.value.as_slice()));
        let options = options.transpose().map_err(|error| wrong(error.to_string()))?;
        let http = options.and_then(|options| match options.upstream_protocol_options? {
            UpstreamProtocolOptions::ExplicitHttpConfig(explicit) => {
                match explicit.protocol_config? {
                    ProtocolConfig::HttpProtocolOptions(_) => Some(Http::Http1),
                    ProtocolConfig::Http2ProtocolOptions(_) => Some(Http::Http2),
                    ProtocolConfig::Http3ProtocolOptions(_) => None,
                }
            }
            UpstreamProtocolOptions::UseDownstreamProtocolConfig(_) => Some(Http::AsClient),
            UpstreamProtocolOptions::AutoConfig(_) => None,
        });
        Ok(Self { whither, http })
    }
}

/// The healthy endpoints of a load assignment, nearest first.
pub fn targets(assignment: &ClusterLoadAssignment) -> Vec<Target> {
    let mut targets = Vec::new();
    for group in &assignment.endpoints {
        let locality = group.locality.as_ref().map(|own| {
            let parts = [&*own.region, &*own.zone].into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("/")
        });
        let locality = locality.filter(|text| !text.is_empty());
        for endpoint in &group.lb_endpoints {
            let healthy = [HealthStatus::Unknown, HealthStatus::Healthy];
            let fit = healthy.iter().any(|status| endpoint.health_status == i32::from(*status));
            let Some(HostIdentifier::Endpoint(host)) = &endpoint.host_identifier else { continue };
            let Some(address) = host.address.as_ref().and_then(socket).filter(|_| fit) else {
                continue;
            };
            targets.push(Target {
                priority: group.priority,
                address,
                weight: endpoint.load_balancing_weight.map_or(1, |weight| weight.value),
                locality: locality.clone(),
                pod: None,
            });
        }
    }
    targets.sort();
    targets
}

fn socket(address: &Address) -> Option<SocketAddr> {
    let Some(Form::SocketAddress(socket)) = &address.address else { return None };
    let ip: IpAddr = socket.address.parse().ok()?;
    let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else { return None };
    Some(SocketAddr::new(ip, u16::try_from(port).ok()?))
}
