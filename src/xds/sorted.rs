//! A map sorted by name whose versions share what did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How many entries a chunk holds at most. A change copies one chunk and the list of chunks, so
/// that at ten thousand names both are about as long.
const FULL: usize = 128;

type Chunk<V> = Arc<Vec<(Arc<str>, V)>>;

/// Values by name, in chunks. Cloning shares all chunks, and a change copies the one that it is in.
#[derive(Debug, Clone)]
pub struct Sorted<V> {
    /// Sorted, and none of them empty.
    chunks: Vec<Chunk<V>>,
    len: usize,
}

impl<V> Sorted<V> {
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.get_key_value(name).map(|(_, value)| value)
    }

    /// The name as it is kept here, and its value.
    pub fn get_key_value(&self, name: &str) -> Option<(&Arc<str>, &V)> {
        let chunk = self.chunks.get(self.chunk_of(name))?;
        let at = find(chunk, name).ok()?;
        chunk.get(at).map(|(name, value)| (name, value))
    }

    /// Whether there is a value of a name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get_key_value(name).is_some()
    }

    /// All names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(name, value)| (name, value))
    }

    /// All names, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().map(|(name, _)| name)
    }

    /// All values, in the order of their names.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The chunk that a name is in, if it is anywhere.
    fn chunk_of(&self, name: &str) -> usize {
        let begins = |chunk: &Chunk<V>| chunk.first().is_some_and(|(first, _)| **first <= *name);
        self.chunks.partition_point(begins).saturating_sub(1)
    }
}

impl<V: Clone> Sorted<V> {
    /// Sets the value of a name; `None` removes it.
    pub fn set(&mut self, name: Arc<str>, value: Option<V>) {
        let at = self.chunk_of(&name);
        let Some(chunk) = self.chunks.get_mut(at) else {
            if let Some(value) = value {
                self.chunks.push(Arc::new(vec![(name, value)]));
                self.len = 1;
            }
            return;
        };
        match (find(chunk, &name), value) {
            (Ok(found), Some(value)) => {
                if let Some(entry) = Arc::make_mut(chunk).get_mut(found) {
                    entry.1 = value;
                }
            }
            (Err(before), Some(value)) => {
                let chunk = Arc::make_mut(chunk);
                chunk.insert(before, (name, value));
                self.len += 1;
                if chunk.len() > FULL {
                    let rest = chunk.split_off(FULL / 2);
                    self.chunks.insert(at + 1, Arc::new(rest));
                }
            }
            (Ok(found), None) => {
                Arc::make_mut(chunk).remove(found);
                self.len -= 1;
                self.join(at);
            }
            (Err(_), None) => {}
        }
    }

    /// Joins a chunk with the next where both are small, and drops it where it is empty.
    fn join(&mut self, at: usize) {
        let len = |at: usize| self.chunks.get(at).map(|chunk| chunk.len());
        match (len(at), len(at + 1)) {
            (Some(0), _) => {
                self.chunks.remove(at);
            }
            (Some(one), Some(next)) if one + next <= FULL / 2 => {
                let next = self.chunks.remove(at + 1);
                if let Some(chunk) = self.chunks.get_mut(at) {
                    Arc::make_mut(chunk).extend(next.iter().cloned());
                }
            }
            _ => {}
        }
    }
}

/// Where a name is in a chunk, or where it would be.
fn find<V>(chunk: &[(Arc<str>, V)], name: &str) -> Result<usize, usize> {
    chunk.binary_search_by(|(found, _)| (**found).cmp(name))
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<V> From<BTreeMap<Arc<str>, V>> for Sorted<V> {
    fn from(map: BTreeMap<Arc<str>, V>) -> Self {
        let len = map.len();
        let mut entries = map.into_iter();
        // Half full, so that the first additions split none.
        let chunks = std::iter::from_fn(|| {
            let chunk: Vec<_> = entries.by_ref().take(FULL / 2).collect();
            (!chunk.is_empty()).then(|| Arc::new(chunk))
        });
        Self { chunks: chunks.collect(), len }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn name(n: u16) -> Arc<str> {
        format!("{n:05}").into()
    }

    /// It holds what the map holds, and its chunks are as they are to be.
    fn check(sorted: &Sorted<u32>, map: &BTreeMap<Arc<str>, u32>) {
        assert!(sorted.iter().eq(map));
        assert_eq!((sorted.len(), sorted.is_empty()), (map.len(), map.is_empty()));
        assert!(sorted.chunks.iter().all(|chunk| (1..=FULL).contains(&chunk.len())));
        // Two small ones in a row are rare: else a list of chunks would be as long as the map.
        assert!(
            sorted.chunks.len() <= 2 + map.len() / (FULL / 8),
            "{} chunks",
            sorted.chunks.len()
        );
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_an_older_version_stays_as_it_was(
            first in prop::collection::btree_map(0..1_500_u16, any::<u32>(), 0..1_500),
            changes in prop::collection::vec((0..1_500_u16, prop::option::weighted(0.4, any::<u32>())), 0..400),
        ) {
            let mut map: BTreeMap<Arc<str>, u32> = first.iter().map(|(n, v)| (name(*n), *v)).collect();
            let (before, old) = (map.clone(), Sorted::from(map.clone()));
            let mut new = old.clone();
            for (n, value) in changes {
                new.set(name(n), value);
                match value {
                    Some(value) => { map.insert(name(n), value); }
                    None => { map.remove(&name(n)); }
                }
                prop_assert_eq!(new.get(&name(n)), map.get(&name(n)));
                prop_assert_eq!(new.contains_key(&name(n)), value.is_some());
            }
            prop_assert!(new.iter().eq(&map));
            prop_assert_eq!(new.len(), map.len());
            check(&old, &before);
        }
    }

    #[test]
    fn a_map_that_grows_and_shrinks_keeps_its_chunks_in_bounds() {
        let (mut sorted, mut map) = (Sorted::default(), BTreeMap::new());
        for n in (0..3_000).map(|n| n * 7 % 3_000) {
            sorted.set(name(n), Some(u32::from(n)));
            map.insert(name(n), u32::from(n));
        }
        check(&sorted, &map);
        for n in (0..3_000).rev().filter(|n| n % 50 != 0) {
            sorted.set(name(n), None);
            map.remove(&name(n));
        }
        check(&sorted, &map);
        for n in 0..3_000 {
            sorted.set(name(n), None);
        }
        check(&sorted, &BTreeMap::new());
    }

    #[test]
    fn a_change_copies_the_chunk_that_it_is_in_and_no_other() {
        let map: BTreeMap<Arc<str>, u32> = (0..10_000).map(|n| (name(n), 0)).collect();
        let old = Sorted::from(map);
        let mut new = old.clone();
        new.set(name(4_321), Some(1));
        let copied = old.chunks.iter().zip(&new.chunks).filter(|(a, b)| !Arc::ptr_eq(a, b)).count();
        assert_eq!(copied, 1);
        assert_eq!((old.get(&name(4_321)), new.get(&name(4_321))), (Some(&0), Some(&1)));
        let kept = old.get_key_value(&name(17)).unwrap().0;
        assert!(Arc::ptr_eq(kept, new.get_key_value(&name(17)).unwrap().0), "names are shared");
    }
}
