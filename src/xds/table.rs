//! Tables: the resources of one type that many proxies see, and what changed in them lately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::listing::Listings;
use super::sorted::Sorted;
use super::{Entry, Kind, Lens};

/// How many generations back a table remembers what changed. A stream that is further behind
/// compares everything, once.
const REMEMBERED: usize = 64;

/// An immutable table of entries by name.
#[derive(Debug)]
pub struct Table {
    kind: Kind,
    entries: Sorted<Entry>,
    /// The log holds every change after this generation.
    known_from: u64,
    log: Vec<(u64, Arc<[Arc<str>]>)>,
    lenses: OnceLock<Arc<BTreeSet<Lens>>>,
    listings: Listings,
}

impl Table {
    /// A first table.
    pub fn new(kind: Kind, generation: u64, entries: BTreeMap<Arc<str>, Entry>) -> Arc<Self> {
        let (lenses, listings) = (OnceLock::new(), Listings::default());
        let (entries, log) = (entries.into(), Vec::new());
        Arc::new(Self { kind, entries, known_from: generation, log, lenses, listings })
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
            .filter(|(name, entry)| !self.entries.get(name).is_some_and(|old| old.same(entry)))
            .map(|(name, _)| name);
        let names: Arc<[Arc<str>]> = gone.chain(changed).cloned().collect();
        self.follow(generation, entries.into(), names, OnceLock::new())
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
        let lenses = self.lenses_with(changes.values().flatten());
        let mut entries = self.entries.clone();
        for (name, change) in changes {
            entries.set(name, change);
        }
        self.follow(generation, entries, names, lenses)
    }

    /// The next table, where any names changed.
    fn follow(
        self: &Arc<Self>,
        generation: u64,
        entries: Sorted<Entry>,
        names: Arc<[Arc<str>]>,
        lenses: OnceLock<Arc<BTreeSet<Lens>>>,
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
        let (kind, listings) = (self.kind, Listings::default());
        Arc::new(Self { kind, entries, known_from, log, lenses, listings })
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
    pub fn entries(&self) -> &Sorted<Entry> {
        &self.entries
    }

    /// The lenses for which any entry has a form, or had one lately. All others see the same.
    pub(super) fn lenses(&self) -> &BTreeSet<Lens> {
        self.lenses.get_or_init(|| {
            let mut lenses = BTreeSet::new();
            self.entries.values().for_each(|entry| entry.add_lenses(&mut lenses));
            Arc::new(lenses)
        })
    }

    /// The lenses with those of some entries more, if they are known: to look for them again at
    /// each change would cost as much as there is. One that no entry has any more counts on, which
    /// costs a listing more and tells nobody anything wrong.
    fn lenses_with<'a>(
        &self,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> OnceLock<Arc<BTreeSet<Lens>>> {
        let Some(known) = self.lenses.get() else { return OnceLock::new() };
        let mut more = BTreeSet::new();
        entries.for_each(|entry| entry.add_lenses(&mut more));
        if more.is_subset(known) {
            return known.clone().into();
        }
        more.extend(known.iter().cloned());
        Arc::new(more).into()
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
    /// Adds the lenses for which there is a form.
    fn add_lenses(&self, lenses: &mut BTreeSet<Lens>) {
        let Self::ByLens { forms, .. } = self else { return };
        for lens in forms.keys() {
            if !lenses.contains(lens) {
                lenses.insert(lens.clone());
            }
        }
    }

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Resource;
    use super::*;

    fn plain(name: &str, body: &str) -> Entry {
        Entry::Plain(Resource::new(Kind::Endpoints, name, body.as_bytes().to_vec(), None))
    }

    fn by(name: &str, lens: &str) -> Entry {
        let forms = BTreeMap::from([(Lens::from(lens), plain(name, lens))]);
        Entry::ByLens { forms: Arc::new(forms), other: Box::new(plain(name, "other")) }
    }

    fn words(table: &Table) -> Vec<String> {
        table.lenses().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_knows_the_lenses_that_it_brings_whether_or_not_the_others_were_asked_for() {
        for asked in [false, true] {
            let first = Table::new(Kind::Endpoints, 1, [("a".into(), by("a", "east"))].into());
            if asked {
                assert_eq!(words(&first), ["east"]);
            }
            let second = first.patched(2, [("b".into(), Some(by("b", "west")))].into());
            assert_eq!(words(&second), ["east", "west"], "asked before: {asked}");
            let third = second.patched(3, [("c".into(), Some(plain("c", "x")))].into());
            assert!(words(&third).iter().eq(&["east", "west"]));
        }
    }

    #[test]
    fn a_table_is_changed_by_what_differs_and_remembers_its_name() {
        let of = |body: &str| BTreeMap::from([("a".into(), Some(plain("a", body)))]);
        let first = Table::new(Kind::Endpoints, 1, [("a".into(), plain("a", "1"))].into());
        assert!(Arc::ptr_eq(&first, &first.patched(2, of("1"))), "equal content is no change");
        assert!(Arc::ptr_eq(&first, &first.patched(2, [("b".into(), None)].into())));
        let second = first.patched(2, of("2"));
        let names: Vec<&str> = second.changed_since(1).unwrap().map(|name| &**name).collect();
        assert_eq!(names, ["a"]);
        assert!(second.changed_since(0).is_none(), "what came before it is not remembered");
        assert_eq!(second.patched(3, [("a".into(), None)].into()).entries().len(), 0);
    }
}
