//! Views: what one proxy sees of a snapshot. Nothing here is stored for each proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::digest::{Digest, Member};
use super::listing::Listing;
use super::{Batch, Entry, Group, Kind, Lens, NodeSpec, Resource, Snapshot, Table, Version, field};

/// A table, seen as it is or through a prefix.
#[derive(Debug, Clone)]
pub struct Layer {
    table: Arc<Table>,
    prefix: Option<Arc<str>>,
}

impl Layer {
    /// The table as it is.
    pub fn plain(table: Arc<Table>) -> Self {
        Self { table, prefix: None }
    }

    /// A table of stems under names that begin with `prefix`; each resource bears its whole name
    /// in field 1, before the stem.
    pub fn prefixed(table: Arc<Table>, prefix: impl Into<Arc<str>>) -> Self {
        Self { table, prefix: Some(prefix.into()) }
    }

    /// The table.
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether both show the very same table in the same way.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.prefix == other.prefix
    }

    /// The name as this layer shows it.
    fn shown(&self, name: &Arc<str>) -> Arc<str> {
        match &self.prefix {
            None => name.clone(),
            Some(prefix) => format!("{prefix}{name}").into(),
        }
    }

    /// The name in the table of a shown name.
    fn inner<'a>(&self, name: &'a str) -> Option<&'a str> {
        match &self.prefix {
            None => Some(name),
            Some(prefix) => name.strip_prefix(prefix.as_ref()),
        }
    }

    /// Whether it shows a name.
    fn shows(&self, name: &str) -> bool {
        self.inner(name).is_some_and(|inner| self.table.get(inner).is_some())
    }

    /// The resource of a shown name.
    fn get(&self, name: &str, lenses: &[Lens]) -> Option<Resource> {
        Some(self.resource(self.table.get(self.inner(name)?)?, name, lenses))
    }

    fn resource(&self, entry: &Entry, name: &str, lenses: &[Lens]) -> Resource {
        match entry {
            Entry::Plain(resource) => resource.clone(),
            Entry::Stem(stem) => {
                let head = field::only(1, name.as_bytes());
                Resource::headed(self.table.kind(), name, head, stem)
            }
            Entry::Composed(composed) => composed.resource().clone(),
            Entry::ByLens { forms, other } => {
                let form = lenses.iter().find_map(|lens| forms.get(lens)).unwrap_or(other);
                self.resource(form, name, lenses)
            }
        }
    }

    /// The version of a shown name, without making the resource.
    fn version(&self, name: &str, lenses: &[Lens]) -> Option<Version> {
        Some(Self::version_of(self.table.get(self.inner(name)?)?, name, lenses))
    }

    fn version_of(entry: &Entry, name: &str, lenses: &[Lens]) -> Version {
        match entry {
            Entry::Plain(resource) => resource.version(),
            Entry::Stem(stem) => Version::headed(&field::only(1, name.as_bytes()), stem),
            Entry::Composed(composed) => composed.resource().version(),
            Entry::ByLens { forms, other } => {
                let form = lenses.iter().find_map(|lens| forms.get(lens)).unwrap_or(other);
                Self::version_of(form, name, lenses)
            }
        }
    }

    /// All resources that the layer shows, by name.
    fn resources<'a>(&'a self, lenses: &'a [Lens]) -> impl Iterator<Item = Resource> + 'a {
        self.table.entries().iter().map(|(name, entry)| {
            let name = self.shown(name);
            self.resource(entry, &name, lenses)
        })
    }

    /// All resources that layers show by name; of one name, that of the first layer counts.
    pub(super) fn union(layers: &[Self]) -> BTreeMap<Arc<str>, Resource> {
        let all = layers.iter().rev().flat_map(|layer| layer.resources(&[]));
        all.map(|resource| (resource.name().clone(), resource)).collect()
    }
}

/// What one proxy sees of one snapshot, over one protocol.
#[derive(Debug, Clone)]
pub struct View {
    snapshot: Arc<Snapshot>,
    node: Arc<NodeSpec>,
    group: Arc<Group>,
    lenses: Arc<[Lens]>,
}

impl View {
    /// The view of a node that the snapshot knows; `None` for one that still waits. `protocol` is
    /// the lens of the stream's protocol, which comes before the node's own.
    pub fn new(snapshot: &Arc<Snapshot>, node_id: &str, protocol: &Lens) -> Option<Self> {
        let node = snapshot.nodes.get(node_id)?;
        let group = snapshot.groups.get(&node.group)?;
        let lenses = std::iter::once(protocol).chain(&node.lenses).cloned().collect();
        Some(Self { snapshot: snapshot.clone(), node: node.clone(), group: group.clone(), lenses })
    }

    /// The snapshot's generation.
    pub fn generation(&self) -> u64 {
        self.snapshot.generation
    }

    /// Whether what the node refuses of its own goes again by and by.
    pub fn retries(&self) -> bool {
        self.node.retry
    }

    /// Whether a resource is the node's own.
    pub fn owns(&self, kind: Kind, name: &str) -> bool {
        self.node.own.iter().any(|own| own.kind == kind && *own.name == *name)
    }

    /// The resource of a name.
    pub fn get(&self, kind: Kind, name: &str) -> Option<Resource> {
        let own = self.node.own.iter().find(|own| own.kind == kind && *own.name == *name);
        if let Some(own) = own {
            let stem = self.snapshot.stems.get(&own.stem)?;
            return Some(Resource::headed(kind, own.name.clone(), own.head.clone(), stem));
        }
        self.group.layers(kind).iter().find_map(|layer| layer.get(name, &self.lenses))
    }

    /// The version of the resource of a name, without making that resource.
    pub fn version(&self, kind: Kind, name: &str) -> Option<Version> {
        let own = self.node.own.iter().find(|own| own.kind == kind && *own.name == *name);
        if let Some(own) = own {
            return Some(Version::headed(&own.head, self.snapshot.stems.get(&own.stem)?));
        }
        self.group.layers(kind).iter().find_map(|layer| layer.version(name, &self.lenses))
    }

    /// All resources that a wildcard takes in, each name once.
    pub fn all(&self, kind: Kind) -> Vec<Resource> {
        let own = self.node.own.iter().filter(|own| own.kind == kind);
        let own = own.filter_map(|own| self.get(kind, &own.name));
        let layers = self.group.layers(kind);
        if let [one] = layers
            && !self.node.own.iter().any(|own| own.kind == kind)
        {
            return one.resources(&self.lenses).collect();
        }
        let shared = layers.iter().rev().flat_map(|layer| layer.resources(&self.lenses));
        let all: BTreeMap<_, _> = shared.chain(own).map(|r| (r.name().clone(), r)).collect();
        all.into_values().collect()
    }

    /// All resources that a wildcard takes in, as all streams share them that see the same.
    pub fn batch(&self, kind: Kind) -> Batch {
        match self.listing(kind) {
            Some(listing) => listing.batch(|| self.all(kind)),
            None => Batch::new(self.all(kind)),
        }
    }

    /// The listing that this view shares with others; `None` where the node has resources of its
    /// own.
    fn listing(&self, kind: Kind) -> Option<Arc<Listing>> {
        if self.node.own.iter().any(|own| own.kind == kind) {
            return None;
        }
        let layers = self.group.layers(kind);
        let counts = |lens: &&Lens| layers.iter().any(|layer| layer.table.lenses().contains(*lens));
        let lenses: Vec<&Lens> = self.lenses.iter().filter(counts).collect();
        Some(match layers {
            // What all groups see alike.
            [one] if one.prefix.is_none() => one.table.listings().of(&lenses),
            _ => self.group.listings(kind)?.of(&lenses),
        })
    }

    /// The digest of all names that a wildcard takes in.
    pub(super) fn names_digest(&self, kind: Kind) -> Digest {
        let make = || Digest::of_names(self.names(kind));
        self.listing(kind).map_or_else(make, |listing| listing.names(make))
    }

    /// The digest of all names and versions that a wildcard takes in.
    pub(super) fn held_digest(&self, kind: Kind) -> Digest {
        let held = |name: Arc<str>| Some(Member::held(&name, self.version(kind, &name)?));
        let make = || self.names(kind).into_iter().filter_map(held).collect();
        self.listing(kind).map_or_else(make, |listing| listing.held(make))
    }

    /// Whether there is a resource of a name.
    pub(super) fn shows(&self, kind: Kind, name: &str) -> bool {
        self.node.own.iter().any(|own| own.kind == kind && *own.name == *name)
            || self.group.layers(kind).iter().any(|layer| layer.shows(name))
    }

    /// The name in the form that the snapshot shares, where it has one.
    pub fn shared_name(&self, kind: Kind, name: &str) -> Arc<str> {
        let plain = self.group.layers(kind).iter().filter(|layer| layer.prefix.is_none());
        let mut tables = plain.map(|layer| layer.table.entries());
        let shared = tables.find_map(|entries| entries.get_key_value(name));
        shared.map_or_else(|| name.into(), |(name, _)| name.clone())
    }

    /// All names that a wildcard takes in, sorted.
    pub fn names(&self, kind: Kind) -> BTreeSet<Arc<str>> {
        let own = self.node.own.iter().filter(|own| own.kind == kind).map(|own| own.name.clone());
        let layers = self.group.layers(kind).iter();
        own.chain(layers.flat_map(|l| l.table.entries().keys().map(|name| l.shown(name)))).collect()
    }

    /// The names that may differ from what this node saw at a generation, its own included;
    /// `None` where that is not remembered, and everything must be compared.
    pub fn changed_since(&self, kind: Kind, generation: u64) -> Option<BTreeSet<Arc<str>>> {
        let own = self.node.own.iter().filter(|own| own.kind == kind).map(|own| own.name.clone());
        let mut names: BTreeSet<_> = own.collect();
        for layer in self.group.layers(kind) {
            let changed = layer.table.changed_since(generation)?;
            names.extend(changed.map(|name| layer.shown(name)));
        }
        Some(names)
    }

    /// Whether two views of one node differ in more than the content of their tables: then
    /// `changed_since` does not tell everything, and everything must be compared.
    pub fn same_shape(&self, other: &Self) -> bool {
        let (a, b) = (&self.node, &other.node);
        let names = || a.own.iter().map(|own| &own.name).eq(b.own.iter().map(|own| &own.name));
        let own = Arc::ptr_eq(a, b) || a.group == b.group && names();
        let group = Arc::ptr_eq(&self.group, &other.group);
        own && self.lenses == other.lenses && (group || self.group.same_shape(&other.group))
    }
}

impl Group {
    /// Whether the same prefixes stand over as many tables.
    fn same_shape(&self, other: &Self) -> bool {
        Kind::ALL.into_iter().all(|kind| {
            let (a, b) = (self.layers(kind), other.layers(kind));
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.prefix == b.prefix)
        })
    }
}
