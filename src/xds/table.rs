//! Tables: the resources of one type that many proxies see, and what changed in them lately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::listing::Listings;
use super::{Entry, Kind, Lens};

/// How many generations back a table remembers what changed. A stream that is further behind
/// compares everything, once.
const REMEMBERED: usize = 64;

/// An immutable table of entries by name.
#[derive(Debug)]
pub struct Table {
    kind: Kind,
    entries: BTreeMap<Arc<str>, Entry>,
    /// The log holds every change after this generation.
    known_from: u64,
    log: Vec<(u64, Arc<[Arc<str>]>)>,
    lenses: OnceLock<BTreeSet<Lens>>,
    listings: Listings,
}

impl Table {
    /// A first table.
    pub fn new(kind: Kind, generation: u64, entries: BTreeMap<Arc<str>, Entry>) -> Arc<Self> {
        Self::of(kind, entries, generation, Vec::new())
    }

    fn of(
        kind: Kind,
        entries: BTreeMap<Arc<str>, Entry>,
        known_from: u64,
        log: Vec<(u64, Arc<[Arc<str>]>)>,
    ) -> Arc<Self> {
        let (lenses, listings) = (OnceLock::new(), Listings::default());
        Arc::new(Self { kind, entries, known_from, log, lenses, listings })
    }

    /// The table that follows this one; this one itself where nothing changed.
    pub fn next(
        self: &Arc<Self>,
        generation: u64,
        entries: BTreeMap<Arc<str>, Entry>,
    ) -> Arc<Self> {
        let gone = self.entries.keys().filter(|name| !entries.contains_key(*name));
        let changed = entries
            .iter()
            .filter(|(name, entry)| !self.entries.get(*name).is_some_and(|old| old.same(entry)))
            .map(|(name, _)| name);
        let names: Arc<[Arc<str>]> = gone.chain(changed).cloned().collect();
        self.follow(generation, entries, names)
    }

    /// The table that follows this one by some changes, `None` for a removal; this one itself
    /// where they change nothing. Only what is named is compared.
    pub fn patched(
        self: &Arc<Self>,
        generation: u64,
        mut changes: BTreeMap<Arc<str>, Option<Entry>>,
    ) -> Arc<Self> {
        changes.retain(|name, change| match (self.entries.get(name), change) {
            (Some(old), Some(new)) => !old.same(new),
            (old, new) => old.is_some() || new.is_some(),
        });
        if changes.is_empty() {
            return self.clone();
        }
        let names: Arc<[Arc<str>]> = changes.keys().cloned().collect();
        let mut entries = self.entries.clone();
        for (name, change) in changes {
            match change {
                Some(entry) => entries.insert(name, entry),
                None => entries.remove(&name),
            };
        }
        self.follow(generation, entries, names)
    }

    /// The next table, where any names changed.
    fn follow(
        self: &Arc<Self>,
        generation: u64,
        entries: BTreeMap<Arc<str>, Entry>,
        names: Arc<[Arc<str>]>,
    ) -> Arc<Self> {
        if names.is_empty() {
            return self.clone();
        }
        let mut log = self.log.clone();
        let mut known_from = self.known_from;
        while log.len() >= REMEMBERED {
            known_from = log.remove(0).0;
        }
        log.push((generation, names));
        Self::of(self.kind, entries, known_from, log)
    }

    /// The type of its resources.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The entry of a name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All entries, sorted by name.
    pub fn entries(&self) -> &BTreeMap<Arc<str>, Entry> {
        &self.entries
    }

    /// The lenses for which any entry has a form. All others see the same.
    pub(super) fn lenses(&self) -> &BTreeSet<Lens> {
        self.lenses.get_or_init(|| {
            let mut lenses = BTreeSet::new();
            for entry in self.entries.values() {
                let Entry::ByLens { forms, .. } = entry else { continue };
                for lens in forms.keys().filter(|lens| !lenses.contains(*lens)).collect::<Vec<_>>()
                {
                    lenses.insert(lens.clone());
                }
            }
            lenses
        })
    }

    /// What is known of the table as it is.
    pub(super) fn listings(&self) -> &Listings {
        &self.listings
    }

    /// The names that were added, changed or removed after a generation, some perhaps twice;
    /// `None` where the table does not remember so far back.
    pub fn changed_since(&self, generation: u64) -> Option<impl Iterator<Item = &Arc<str>>> {
        let newer = self.log.iter().filter(move |(at, _)| *at > generation);
        (generation >= self.known_from).then(|| newer.flat_map(|(_, names)| names.iter()))
    }
}

impl Entry {
    /// Whether the content is known to be the same, without looking at bytes. A composed entry
    /// is not put together for it: one of other tables counts as changed, and whoever holds a
    /// version of it compares that.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(a), Self::Plain(b)) => a.version() == b.version(),
            (Self::Stem(a), Self::Stem(b)) => a.version == b.version,
            (Self::ByLens { forms: a, other: x }, Self::ByLens { forms: b, other: y }) => {
                Arc::ptr_eq(a, b)
                    || x.same(y)
                        && a.len() == b.len()
                        && a.iter().zip(b.iter()).all(|(p, q)| p.0 == q.0 && p.1.same(q.1))
            }
            (Self::Composed(a), Self::Composed(b)) => Arc::ptr_eq(a, b) || a.same_parts(b),
            _ => false,
        }
    }
}
