//! A world of raw resources to serve.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::super::{
    Entry, Group, Kind, Layer, NodeSpec, Own, Resource, Snapshot, Stem, Store, Table,
};

pub const CDS: Kind = Kind::Cluster;
pub const EDS: Kind = Kind::Endpoints;
pub const LDS: Kind = Kind::Listener;
pub const RDS: Kind = Kind::Routes;
pub const VHDS: Kind = Kind::VirtualHost;

/// The node that the world knows.
pub const NODE: &str = "pod/shop/cart";

/// Resources by type and name, which become snapshots.
#[derive(Default)]
pub struct World {
    pub generation: u64,
    pub entries: BTreeMap<Kind, BTreeMap<Arc<str>, Entry>>,
    pub tables: BTreeMap<Kind, Arc<Table>>,
    pub without_node: bool,
    /// Who the node has to be.
    pub identity: Option<Arc<str>>,
    pub retry: bool,
    /// Listeners of the node's own.
    pub own: BTreeSet<Arc<str>>,
}

impl World {
    pub fn set(&mut self, kind: Kind, name: &str, body: &str) -> &mut Self {
        self.put(Resource::new(kind, name, Bytes::copy_from_slice(body.as_bytes()), None))
    }

    /// A cluster that needs the load assignment of its own name.
    pub fn cluster(&mut self, name: &str, body: &str) -> &mut Self {
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.put(Resource::new(Kind::Cluster, name, body, Some(name.into())))
    }

    pub fn put(&mut self, resource: Resource) -> &mut Self {
        let (kind, name) = (resource.kind(), resource.name().clone());
        self.entries.entry(kind).or_default().insert(name, Entry::Plain(resource));
        self
    }

    pub fn remove(&mut self, kind: Kind, name: &str) -> &mut Self {
        self.entries.entry(kind).or_default().remove(name);
        self
    }

    pub fn has(&self, kind: Kind, name: &str) -> bool {
        self.entries.get(&kind).is_some_and(|entries| entries.contains_key(name))
    }

    pub fn body(&self, kind: Kind, name: &str) -> String {
        match &self.entries[&kind][name] {
            Entry::Plain(resource) => {
                String::from_utf8(resource.body().to_bytes().to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    /// A service: a cluster and its endpoints.
    pub fn service(&mut self, name: &str, body: &str) -> &mut Self {
        self.cluster(name, body).set(Kind::Endpoints, name, body)
    }

    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        self.generation += 1;
        for kind in Kind::ALL {
            let entries = self.entries.get(&kind).cloned().unwrap_or_default();
            let next = match self.tables.get(&kind) {
                Some(table) => table.next(self.generation, entries),
                None => Table::new(kind, self.generation, entries),
            };
            self.tables.insert(kind, next);
        }
        let layers =
            self.tables.iter().map(|(kind, table)| (*kind, vec![Layer::plain(table.clone())]));
        let own = self.own.iter().map(|name| Own {
            kind: LDS,
            name: name.clone(),
            head: name.to_string().into(),
            stem: "own".into(),
        });
        let spec = NodeSpec {
            group: "all".into(),
            identity: self.identity.clone(),
            lenses: Vec::new(),
            own: own.collect(),
            retry: self.retry,
        };
        let node = (Arc::from(NODE), Arc::new(spec));
        let nodes: BTreeMap<_, _> = (!self.without_node).then_some(node).into_iter().collect();
        Arc::new(Snapshot {
            generation: self.generation,
            nodes: nodes.into(),
            groups: BTreeMap::from([("all".into(), Arc::new(Group::new(layers.collect())))]),
            stems: BTreeMap::from([("own".into(), Stem::new(Bytes::from_static(b"!")))]),
            heard: 0,
            origin: None,
        })
    }

    pub fn publish(&mut self, store: &Store) {
        store.publish(self.snapshot());
    }
}
