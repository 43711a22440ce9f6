//! How large a snapshot is.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Entry, Kind, Snapshot};

/// How much of a type a snapshot holds. What many proxies share counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Resources, each of its forms counted.
    pub resources: u64,
    /// Bytes of them. What is made of the parts of others, such as a route configuration of
    /// virtual hosts, has none of its own.
    pub bytes: u64,
}

impl Snapshot {
    /// The sizes by type. The work is proportional to what exists, so this is for people and
    /// scrapes.
    pub fn sizes(&self) -> BTreeMap<Kind, Size> {
        let mut sizes: BTreeMap<Kind, Size> =
            Kind::ALL.into_iter().map(|kind| (kind, Size::default())).collect();
        let mut seen = HashSet::new();
        for group in self.groups.values() {
            for (kind, size) in &mut sizes {
                let tables = group.layers(*kind).iter().map(super::Layer::table);
                for table in tables.filter(|table| seen.insert(Arc::as_ptr(table))) {
                    table.entries().values().for_each(|entry| size.add(entry));
                }
            }
        }
        let own = self.nodes.values().flat_map(|node| &node.own);
        for own in own {
            sizes.entry(own.kind).or_default().put(own.head.len());
        }
        // A stem is the tail of resources of one type, that of the heads that it is under.
        let stems = self.nodes.values().flat_map(|node| &node.own);
        let stems: BTreeMap<_, _> = stems.map(|own| (&own.stem, own.kind)).collect();
        for (key, kind) in stems {
            let bytes = self.stems.get(key).map_or(0, |stem| stem.rope.len());
            sizes.entry(kind).or_default().bytes += bytes as u64;
        }
        sizes
    }
}

impl Size {
    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Plain(resource) => self.put(resource.body().len()),
            Entry::Stem(stem) => self.put(stem.rope.len()),
            Entry::Composed(_) => self.put(0),
            Entry::ByLens { forms, other } => {
                forms.values().for_each(|form| self.add(form));
                self.add(other);
            }
        }
    }

    fn put(&mut self, bytes: usize) {
        self.resources += 1;
        self.bytes += bytes as u64;
    }
}
