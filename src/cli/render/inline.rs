//! A static bootstrap: every name resolved, so that an Envoy runs it without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use envoy_types::pb::envoy::config::bootstrap::v3::bootstrap::{
    DeferredStatOptions, StaticResources,
};
use envoy_types::pb::envoy::config::bootstrap::v3::{Admin, Bootstrap};
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use envoy_types::pb::google::protobuf::BoolValue;
use prost::Message;

use super::resources::{Resources, http_managers};
use crate::cli::bootstrap::node;
use crate::model::NodeId;
use crate::xds::Resource;

/// Resources by name.
type ByName<T> = BTreeMap<Arc<str>, T>;

/// The bootstrap of a node's resources.
pub(super) fn bootstrap(
    resources: &Resources,
    id: &NodeId,
    admin: Option<Admin>,
) -> Result<Bootstrap> {
    let routes: ByName<RouteConfiguration> = decode(&resources.routes)?;
    let assignments: ByName<ClusterLoadAssignment> = decode(&resources.endpoints)?;
    let mut listeners: ByName<Listener> = decode(&resources.listeners)?;
    for listener in listeners.values_mut() {
        inline_routes(listener, &routes)?;
    }
    let mut clusters: ByName<Cluster> = decode(&resources.clusters)?;
    for cluster in clusters.values_mut() {
        inline_endpoints(cluster, &assignments)?;
    }
    Ok(Bootstrap {
        node: Some(node(id)),
        admin,
        static_resources: Some(StaticResources {
            listeners: listeners.into_values().collect(),
            clusters: clusters.into_values().collect(),
            ..StaticResources::default()
        }),
        deferred_stat_options: Some(DeferredStatOptions { enable_deferred_creation_stats: true }),
        ..Bootstrap::default()
    })
}

fn decode<T: Message + Default>(resources: &[Resource]) -> Result<ByName<T>> {
    let one = |resource: &Resource| {
        let message = T::decode(resource.body().to_bytes())
            .with_context(|| format!("the bytes of {}", resource.name()))?;
        Ok((resource.name().clone(), message))
    };
    resources.iter().map(one).collect()
}

/// Puts the route configurations that a listener asks for into it.
fn inline_routes(listener: &mut Listener, routes: &ByName<RouteConfiguration>) -> Result<()> {
    for any in http_managers(listener) {
        let mut manager = HttpConnectionManager::decode(any.value.as_slice())?;
        let Some(RouteSpecifier::Rds(rds)) = &manager.route_specifier else { continue };
        let name = rds.route_config_name.as_str();
        let mut table = routes.get(name).with_context(|| format!("no routes {name}"))?.clone();
        // As it is for routes that come over RDS: an unknown cluster costs its own requests alone.
        table.validate_clusters = Some(BoolValue { value: false });
        manager.route_specifier = Some(RouteSpecifier::RouteConfig(table));
        any.value = manager.encode_to_vec();
    }
    Ok(())
}

/// Puts the assignment that a cluster asks for into it.
fn inline_endpoints(
    cluster: &mut Cluster,
    assignments: &ByName<ClusterLoadAssignment>,
) -> Result<()> {
    let Some(eds) = cluster.eds_cluster_config.take() else { return Ok(()) };
    let name = match eds.service_name.as_str() {
        "" => cluster.name.as_str(),
        name => name,
    };
    let assignment = assignments.get(name).with_context(|| format!("no endpoints {name}"))?;
    cluster.load_assignment = Some(assignment.clone());
    cluster.cluster_discovery_type = Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into()));
    Ok(())
}
