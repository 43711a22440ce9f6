//! Route configurations: the tables that hold the virtual hosts, or say where they come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, Vhds};

use super::naming::{ANY, ROUTES, SOTW_LENS};
use super::proto::{ads_awaited, encoded, truth};
use crate::xds::{Composed, Entry, Kind, Layer, Resource, Table};

/// The field of a `RouteConfiguration` that holds its virtual hosts.
const VIRTUAL_HOSTS: u32 = 2;

/// The virtual hosts that a caller sees, under the name of its route configuration: those of its
/// namespace's services with their bare names, before those of all.
pub(super) fn layers(routes: &str, own: &Arc<Table>, all: &Arc<Table>) -> Vec<Layer> {
    let prefix: Arc<str> = format!("{routes}/").into();
    vec![Layer::prefixed(own.clone(), prefix.clone()), Layer::prefixed(all.clone(), prefix)]
}

/// The entry of a caller's table: whole on a state-of-the-world stream, by VHDS otherwise.
pub(super) fn of_caller(
    name: &Arc<str>,
    own: &Arc<Table>,
    all: &Arc<Table>,
) -> BTreeMap<Arc<str>, Entry> {
    let vhds = RouteConfiguration {
        vhds: Some(Vhds { config_source: Some(ads_awaited()) }),
        ..head(name)
    };
    let by_vhds = Resource::new(Kind::Routes, name.clone(), encoded(&vhds), None);
    let whole = whole(name, layers(name, own, all));
    let entry = Entry::ByLens {
        forms: Arc::new(BTreeMap::from([(SOTW_LENS.into(), whole)])),
        other: Box::new(Entry::Plain(by_vhds)),
    };
    BTreeMap::from([(name.clone(), entry)])
}

/// The entry of the table of the qualified names, which is whole on every stream.
pub(super) fn of_all(all: &Arc<Table>) -> BTreeMap<Arc<str>, Entry> {
    let layer = Layer::prefixed(all.clone(), format!("{ROUTES}/"));
    BTreeMap::from([(ROUTES.into(), whole(&ROUTES.into(), vec![layer]))])
}

fn whole(name: &Arc<str>, layers: Vec<Layer>) -> Entry {
    let last = format!("{name}/{ANY}").into();
    let head = encoded(&head(name));
    let composed =
        Composed::new(Kind::Routes, name.clone(), head, VIRTUAL_HOSTS, layers, Some(last));
    Entry::Composed(Arc::new(composed))
}

fn head(name: &str) -> RouteConfiguration {
    RouteConfiguration {
        name: name.to_owned(),
        ignore_port_in_host_matching: true,
        // Clusters come on their own; one that is missing for a moment must not cost the table.
        validate_clusters: truth(false),
        ..RouteConfiguration::default()
    }
}
