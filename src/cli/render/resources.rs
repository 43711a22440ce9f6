//! The resources of one view, by type.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use envoy_types::pb::envoy::config::listener::v3::{Filter, Listener, filter::ConfigType};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use envoy_types::pb::google::protobuf::Any;
use prost::Message;
use serde::ser::{Error, Serialize, SerializeMap, Serializer};

use crate::descriptors;
use crate::xds::{Kind, Resource, View};

const HTTP_MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.\
                            http_connection_manager.v3.HttpConnectionManager";

/// Everything that a node would get, each type sorted by name.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) listeners: Vec<Resource>,
    pub(super) routes: Vec<Resource>,
    pub(super) clusters: Vec<Resource>,
    pub(super) endpoints: Vec<Resource>,
}

impl Resources {
    /// What an Envoy asks for: all listeners and clusters, the routes that its listeners name, and
    /// the assignments that its clusters need.
    pub(super) fn of(view: &View) -> Result<Self> {
        let all = |kind| view.names(kind).iter().filter_map(|name| view.get(kind, name)).collect();
        let listeners: Vec<Resource> = all(Kind::Listener);
        let clusters: Vec<Resource> = all(Kind::Cluster);
        let mut routes = BTreeSet::new();
        for listener in &listeners {
            let name = listener.name();
            let mut listener = Listener::decode(listener.body().to_bytes())
                .with_context(|| format!("the listener {name}"))?;
            for any in http_managers(&mut listener) {
                let manager =
                    HttpConnectionManager::decode(any.value.as_slice()).with_context(|| {
                        format!("an HTTP connection manager of the listener {name}")
                    })?;
                if let Some(RouteSpecifier::Rds(rds)) = manager.route_specifier {
                    routes.insert(rds.route_config_name.into());
                }
            }
        }
        let needs: BTreeSet<_> = clusters.iter().filter_map(|c| c.needs().cloned()).collect();
        let named = |kind, names: BTreeSet<std::sync::Arc<str>>| {
            let get = |name: &std::sync::Arc<str>| {
                let missing =
                    || format!("nothing is served under the name {name}, which is asked for");
                view.get(kind, name).with_context(missing)
            };
            names.iter().map(get).collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            routes: named(Kind::Routes, routes)?,
            endpoints: named(Kind::Endpoints, needs)?,
            listeners,
            clusters,
        })
    }
}

/// The configurations of a listener's HTTP connection managers.
pub(super) fn http_managers(listener: &mut Listener) -> impl Iterator<Item = &mut Any> {
    let chains = listener.filter_chains.iter_mut().chain(listener.default_filter_chain.iter_mut());
    let filters = chains.flat_map(|chain| chain.filters.iter_mut());
    filters.filter_map(typed).filter(|any| any.type_url == HTTP_MANAGER)
}

fn typed(filter: &mut Filter) -> Option<&mut Any> {
    match &mut filter.config_type {
        Some(ConfigType::TypedConfig(any)) => Some(any),
        _ => None,
    }
}

impl Serialize for Resources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("listeners", &List(&self.listeners))?;
        map.serialize_entry("routes", &List(&self.routes))?;
        map.serialize_entry("clusters", &List(&self.clusters))?;
        map.serialize_entry("endpoints", &List(&self.endpoints))?;
        map.end()
    }
}

/// Resources that become JSON one by one, so that a large mesh is never all in memory as such.
struct List<'a>(&'a [Resource]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Json))
    }
}

struct Json<'a>(&'a Resource);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let url = self.0.kind().type_url();
        let name = url.rsplit('/').next().unwrap_or(url);
        let json =
            descriptors::to_json(name, &self.0.body().to_bytes()).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}
