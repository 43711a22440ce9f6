//! Parts of the mesh: the tables of all services, or of those in a scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::Marks;
use super::naming::{ANY, PASSTHROUGH};
use super::patch::{Change, Changes};
use super::scope::Scope;
use super::service::Made;
use super::{CaptureMode, cluster, route_config, routes};
use crate::model::ServiceKey;
use crate::xds::{Entry, Kind, Stem, Table};

/// The services of a projection as they were made.
pub(super) type Services = BTreeMap<ServiceKey, Made>;

/// The tables of a part. Those of a scope hold the very entries of the whole mesh's: what a name
/// and a pointer take, and no byte of a resource.
#[derive(Debug)]
pub(super) struct Part {
    clusters: Arc<Table>,
    assignments: Arc<Table>,
    hosts: Arc<Table>,
    all_routes: Arc<Table>,
    /// The virtual hosts of the services of a namespace as it sees them itself.
    own: BTreeMap<Arc<str>, Arc<Table>>,
}

/// The tables that a caller sees.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub clusters: Arc<Table>,
    pub assignments: Arc<Table>,
    pub hosts: Arc<Table>,
    pub own: Arc<Table>,
    /// The table of the qualified names; it follows `hosts`.
    pub all_routes: Arc<Table>,
}

/// What stands in the tables of every part.
#[derive(Debug, Clone)]
pub(super) struct Always {
    passthrough: Option<Entry>,
    any: Entry,
}

impl Always {
    /// By the capture mode.
    pub(super) fn new(mode: CaptureMode) -> Self {
        let redirect_all = mode == CaptureMode::RedirectAll;
        Self {
            // Of this one there is always a form for node proxies: it costs nothing.
            passthrough: redirect_all
                .then(|| cluster::entry(&cluster::passthrough(), Some(&Marks::new()))),
            any: Entry::Stem(Stem::new(routes::catch_all(mode))),
        }
    }
}

impl Part {
    /// The part of the whole mesh before any service.
    pub(super) fn empty(always: &Always) -> Self {
        Self::new(always, 0, Tables::default())
    }

    /// The part of a scope. Its tables remember no generation before this one.
    pub(super) fn of_scope(
        always: &Always,
        generation: u64,
        scope: &Scope,
        services: &Services,
    ) -> Self {
        let mut tables = Tables::default();
        for made in within(Some(scope), services) {
            tables.clusters.extend(made.cluster_entries.iter().cloned());
            tables.assignments.extend(made.assignments.iter().cloned());
            let host = made.host.iter();
            tables.hosts.extend(host.map(|h| (h.name.clone(), Entry::Stem(h.qualified.clone()))));
        }
        Self::new(always, generation, tables)
    }

    fn new(always: &Always, generation: u64, mut tables: Tables) -> Self {
        if let Some(passthrough) = &always.passthrough {
            tables.clusters.insert(PASSTHROUGH.into(), passthrough.clone());
        }
        tables.hosts.insert(ANY.into(), always.any.clone());
        let hosts = Table::new(Kind::VirtualHost, generation, tables.hosts);
        Self {
            clusters: Table::new(Kind::Cluster, generation, tables.clusters),
            assignments: Table::new(Kind::Endpoints, generation, tables.assignments),
            all_routes: Table::new(Kind::Routes, generation, route_config::of_all(&hosts)),
            hosts,
            own: BTreeMap::new(),
        }
    }

    /// Takes in what changed of its services.
    pub(super) fn apply(&mut self, generation: u64, changes: &[(&ServiceKey, &Change)]) {
        if changes.is_empty() {
            return;
        }
        let all = |of: fn(&Change) -> &Changes| -> Changes {
            changes.iter().flat_map(|(_, change)| of(change).clone()).collect()
        };
        self.clusters = self.clusters.patched(generation, all(|change| &change.clusters));
        self.assignments = self.assignments.patched(generation, all(|change| &change.assignments));
        self.hosts = self.hosts.patched(generation, all(|change| &change.hosts));
        self.all_routes = self.all_routes.next(generation, route_config::of_all(&self.hosts));
        for (namespace, own) in &mut self.own {
            let of_it = changes.iter().filter(|(key, _)| key.namespace == *namespace);
            let of_it = of_it.flat_map(|(_, change)| change.own_hosts.clone()).collect();
            *own = own.patched(generation, of_it);
        }
    }

    /// Has the own virtual hosts of these namespaces, and of no others.
    pub(super) fn own_hosts(
        &mut self,
        generation: u64,
        namespaces: impl Iterator<Item = Arc<str>>,
        scope: Option<&Scope>,
        services: &Services,
    ) {
        let mut kept = std::mem::take(&mut self.own);
        for namespace in namespaces {
            let own = kept.remove(&namespace);
            let own = own.unwrap_or_else(|| own_table(generation, &namespace, scope, services));
            self.own.insert(namespace, own);
        }
    }

    /// What a caller of a namespace sees; `None` for one whose own virtual hosts are not here.
    pub(super) fn seen(&self, namespace: &str) -> Option<Seen> {
        Some(Seen {
            clusters: self.clusters.clone(),
            assignments: self.assignments.clone(),
            hosts: self.hosts.clone(),
            own: self.own.get(namespace)?.clone(),
            all_routes: self.all_routes.clone(),
        })
    }
}

impl Seen {
    /// Whether these are the very same virtual hosts.
    pub(super) fn same_hosts(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hosts, &other.hosts) && Arc::ptr_eq(&self.own, &other.own)
    }

    /// Whether these are the very same tables.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.same_hosts(other)
            && Arc::ptr_eq(&self.clusters, &other.clusters)
            && Arc::ptr_eq(&self.assignments, &other.assignments)
    }
}

/// The services of a part; `None`: of the whole mesh.
pub(super) fn within<'a>(
    scope: Option<&'a Scope>,
    services: &'a Services,
) -> impl Iterator<Item = &'a Made> {
    let listed = scope.into_iter().flat_map(|scope| scope.listed.iter());
    let listed = listed.filter_map(|key| services.get(key));
    listed.chain(scope.is_none().then(|| services.values()).into_iter().flatten())
}

/// The first entries of tables.
#[derive(Default)]
struct Tables {
    clusters: BTreeMap<Arc<str>, Entry>,
    assignments: BTreeMap<Arc<str>, Entry>,
    hosts: BTreeMap<Arc<str>, Entry>,
}

/// The table of a namespace's services as it sees them itself.
fn own_table(
    generation: u64,
    namespace: &Arc<str>,
    scope: Option<&Scope>,
    services: &Services,
) -> Arc<Table> {
    // The key before all others of the namespace.
    let first = ServiceKey::new(namespace.clone(), "");
    let of_it = services.range(first..).take_while(|(key, _)| key.namespace == *namespace);
    let of_it = of_it.filter(|(key, _)| scope.is_none_or(|scope| scope.listed.contains(*key)));
    let hosts = of_it.filter_map(|(_, made)| made.host.as_ref());
    let entries = hosts.map(|host| (host.name.clone(), Entry::Stem(host.own.clone())));
    Table::new(Kind::VirtualHost, generation, entries.collect())
}
