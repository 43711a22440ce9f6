//! The tables of the snapshot, and what a translation changes in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::Marks;
use super::naming::ANY;
use super::service::Made;
use super::{CaptureMode, cluster, route_config, routes};
use crate::model::ServiceKey;
use crate::xds::{Entry, Group, Kind, Layer, Resource, Stem, Table};

/// Changes of a table by name; `None` removes.
type Changes = BTreeMap<Arc<str>, Option<Entry>>;

/// What changed in the services since the last translation.
#[derive(Debug, Default)]
pub(super) struct Patch {
    clusters: Changes,
    assignments: Changes,
    hosts: Changes,
    own_hosts: BTreeMap<Arc<str>, Changes>,
    /// Whether any chain changed.
    pub chains: bool,
    /// What the clusters of node proxies have besides; `None` while there are none.
    marks: Option<Arc<Marks>>,
}

impl Patch {
    /// No change yet.
    pub(super) fn new(marks: Option<Arc<Marks>>) -> Self {
        Self { marks, ..Self::default() }
    }

    /// Clusters that are to have a form for node proxies from now on.
    pub(super) fn mark<'a>(&mut self, clusters: impl Iterator<Item = &'a Resource>) {
        for cluster in clusters {
            let entry = cluster::entry(cluster, self.marks.as_deref());
            self.clusters.insert(cluster.name().clone(), Some(entry));
        }
    }

    /// A service that takes the place of what it was before; either may be missing.
    pub(super) fn replace(&mut self, old: Option<&Made>, new: Option<&Made>) {
        for (made, present) in [(old, false), (new, true)] {
            let Some(made) = made else { continue };
            let when = |entry: Entry| present.then_some(entry);
            for cluster in &made.clusters {
                let entry = present.then(|| cluster::entry(cluster, self.marks.as_deref()));
                self.clusters.insert(cluster.name().clone(), entry);
            }
            for (name, entry) in &made.assignments {
                self.assignments.insert(name.clone(), when(entry.clone()));
            }
            if let Some(host) = &made.host {
                self.hosts.insert(host.name.clone(), when(Entry::Stem(host.qualified.clone())));
                let own = self.own_hosts.entry(made.source.key.namespace.clone()).or_default();
                own.insert(host.name.clone(), when(Entry::Stem(host.own.clone())));
            }
        }
        let chains = |made: Option<&Made>| made.map(|made| made.chains.clone()).unwrap_or_default();
        self.chains |= chains(old) != chains(new);
    }

    /// Load assignments that are seen from other places.
    pub(super) fn see(&mut self, made: &Made) {
        for (name, entry) in &made.assignments {
            self.assignments.insert(name.clone(), Some(entry.clone()));
        }
    }
}

/// The tables as they are served.
#[derive(Debug)]
pub(super) struct Tables {
    clusters: Arc<Table>,
    assignments: Arc<Table>,
    hosts: Arc<Table>,
    all_routes: Arc<Table>,
    namespaces: BTreeMap<Arc<str>, OfNamespace>,
}

/// The tables of the callers of one namespace.
#[derive(Debug)]
struct OfNamespace {
    hosts: Arc<Table>,
    routes: Arc<Table>,
    group: Arc<Group>,
}

impl Tables {
    /// The tables of a mesh without services.
    pub(super) fn new(mode: CaptureMode, passthrough: Option<&Resource>) -> Self {
        let empty = |kind| Table::new(kind, 0, BTreeMap::new());
        let clusters =
            passthrough.map(|cluster| (cluster.name().clone(), cluster::entry(cluster, None)));
        let clusters = clusters.into_iter().collect();
        let any = Entry::Stem(Stem::new(routes::catch_all(mode)));
        let hosts = Table::new(Kind::VirtualHost, 0, BTreeMap::from([(ANY.into(), any)]));
        Self {
            clusters: Table::new(Kind::Cluster, 0, clusters),
            assignments: empty(Kind::Endpoints),
            all_routes: Table::new(Kind::Routes, 0, route_config::of_all(&hosts)),
            hosts,
            namespaces: BTreeMap::new(),
        }
    }

    /// Takes the changes in, for the namespaces that have pods. Tells whether anything that a
    /// proxy sees is another than before.
    pub(super) fn apply(
        &mut self,
        generation: u64,
        patch: Patch,
        namespaces: &BTreeSet<Arc<str>>,
        services: &BTreeMap<ServiceKey, Made>,
    ) -> bool {
        let shared =
            |tables: &Self| [&tables.clusters, &tables.assignments, &tables.hosts].map(Arc::clone);
        let before = shared(self);
        self.clusters = self.clusters.patched(generation, patch.clusters);
        self.assignments = self.assignments.patched(generation, patch.assignments);
        self.hosts = self.hosts.patched(generation, patch.hosts);
        self.all_routes = self.all_routes.next(generation, route_config::of_all(&self.hosts));
        let same = before.iter().zip(&shared(self)).all(|(a, b)| Arc::ptr_eq(a, b));
        let mut changed = !same;
        let mut own_hosts = patch.own_hosts;
        let mut kept = std::mem::take(&mut self.namespaces);
        for namespace in namespaces {
            let old = kept.remove(namespace);
            let hosts = match &old {
                Some(old) => {
                    let patch = own_hosts.remove(namespace).unwrap_or_default();
                    old.hosts.patched(generation, patch)
                }
                None => own_table(generation, namespace, services),
            };
            let next = match old {
                Some(old) if same && Arc::ptr_eq(&old.hosts, &hosts) => old,
                old => {
                    changed = true;
                    self.of_namespace(generation, namespace, hosts, old.as_ref())
                }
            };
            self.namespaces.insert(namespace.clone(), next);
        }
        changed || !kept.is_empty()
    }

    fn of_namespace(
        &self,
        generation: u64,
        namespace: &str,
        hosts: Arc<Table>,
        old: Option<&OfNamespace>,
    ) -> OfNamespace {
        let entries = route_config::of_namespace(namespace, &hosts, &self.hosts);
        let routes = match old {
            Some(old) => old.routes.next(generation, entries),
            None => Table::new(Kind::Routes, generation, entries),
        };
        let plain = |table: &Arc<Table>| Layer::plain(table.clone());
        let group = Group::new(BTreeMap::from([
            (Kind::Cluster, vec![plain(&self.clusters)]),
            (Kind::Endpoints, vec![plain(&self.assignments)]),
            (Kind::Routes, vec![plain(&routes), plain(&self.all_routes)]),
            (Kind::VirtualHost, route_config::layers(namespace, &hosts, &self.hosts)),
        ]));
        OfNamespace { hosts, routes, group: Arc::new(group) }
    }

    /// The groups by namespace.
    pub(super) fn groups(&self) -> BTreeMap<Arc<str>, Arc<Group>> {
        let each = self.namespaces.iter();
        each.map(|(namespace, of)| (namespace.clone(), of.group.clone())).collect()
    }
}

/// The virtual hosts of a namespace's services as it sees them itself.
fn own_table(
    generation: u64,
    namespace: &Arc<str>,
    services: &BTreeMap<ServiceKey, Made>,
) -> Arc<Table> {
    // The key before all others of the namespace.
    let first = ServiceKey::new(namespace.clone(), "");
    let of_it = services.range(first..).take_while(|(key, _)| key.namespace == *namespace);
    let hosts = of_it.filter_map(|(_, made)| made.host.as_ref());
    let entries = hosts.map(|host| (host.name.clone(), Entry::Stem(host.own.clone())));
    Table::new(Kind::VirtualHost, generation, entries.collect())
}
