//! A map that forgets what was not asked for in a while, and never outgrows its budget.

use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: what is new or was asked for lately, and what is older. When the first has
/// half of the budget, it becomes the second, and the second of before is forgotten. Every
/// operation takes constant time, and whatever is used in between stays.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    /// The weight of the young ones.
    weight: usize,
    /// The most that one generation may weigh.
    half: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Generations<K, V> {
    /// Holds at most this much, in the unit of the weights.
    pub fn new(budget: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, half: budget / 2 }
    }

    /// What is held under a key; it counts as asked for.
    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = self.old.remove_entry(key)?;
        self.insert(key, value.clone(), weight);
        Some(value)
    }

    /// Forgets what is held under a key.
    pub fn remove(&mut self, key: &K) {
        self.old.remove(key);
        if let Some((_, before)) = self.young.remove(key) {
            self.weight = self.weight.saturating_sub(before);
        }
    }

    /// Holds a value, in place of the one before. What alone is heavier than a generation is not
    /// held.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.half {
            return;
        }
        if self.weight + weight > self.half {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(key, (value, weight));
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut map = Generations::new(20);
        for key in 0..1000 {
            map.insert(key, key, 1);
            assert_eq!(map.get(&0), Some(0), "at {key}");
            assert!(map.len() <= 20, "{} at {key}", map.len());
        }
        assert_eq!(map.get(&999), Some(999));
        assert_eq!(map.get(&500), None);
    }

    #[test]
    fn weights_count_and_not_numbers() {
        let mut map = Generations::new(100);
        map.insert("heavy", 1, 51);
        assert_eq!(map.get(&"heavy"), None, "heavier than a generation");
        map.insert("half", 1, 50);
        map.insert("half", 2, 10);
        map.insert("more", 3, 40);
        assert_eq!((map.get(&"half"), map.get(&"more")), (Some(2), Some(3)));
        assert_eq!(map.weight, 50);
        map.insert("next", 4, 1);
        assert_eq!((map.young.len(), map.old.len(), map.weight), (1, 2, 1));
    }
}
