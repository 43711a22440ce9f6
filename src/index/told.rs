//! What was found of each of many things, so that what is found of one of them anew takes the place
//! of what was found before.

use std::collections::BTreeMap;

use crate::model::{Finding, Findings};

/// Findings by what they were found of.
#[derive(Debug)]
pub(super) struct Told<K>(BTreeMap<K, Vec<Finding>>);

impl<K: Ord + Clone> Told<K> {
    /// Notes what is found of something now, here and among all.
    pub(super) fn set(&mut self, of: &K, found: Vec<Finding>, all: &mut Findings) {
        let old = self.0.get(of).map_or(&[][..], Vec::as_slice);
        if old == found.as_slice() {
            return;
        }
        all.replace(old, &found);
        if found.is_empty() {
            self.0.remove(of);
        } else {
            self.0.insert(of.clone(), found);
        }
    }
}

impl<K> Default for Told<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}
