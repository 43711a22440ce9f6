//! The names of a subscription.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::digest::{Digest, Member};
use super::{Kind, View, Words};

/// A set of names of one type. A client that names nearly all there is, as every Envoy does of its
/// load assignments, costs the names that it left out and not those that it gave.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Whether everything that the view shows belongs to it, but for `minus`.
    based: bool,
    /// Where it is based: names that the view does not show. Otherwise: all.
    plus: BTreeSet<Arc<str>>,
    /// Names that the view shows and that do not belong to it; none where it is not based.
    minus: BTreeSet<Arc<str>>,
}

impl Names {
    /// A set of some names.
    pub(super) fn of(set: BTreeSet<Arc<str>>, kind: Kind, view: &View) -> Self {
        let shown = view.names_digest(kind).count;
        if set.len() * 2 <= shown {
            return Self { based: false, plus: set, minus: BTreeSet::new() };
        }
        let minus = view.names(kind).into_iter().filter(|name| !set.contains(name)).collect();
        let plus = set.into_iter().filter(|name| !view.shows(kind, name)).collect();
        Self { based: true, plus, minus }
    }

    /// The set of the names of a request.
    pub(super) fn read(words: &Words, kind: Kind, view: &View) -> Self {
        let digest = words.digest();
        if digest.count > 0 && digest == view.names_digest(kind) {
            return Self { based: true, ..Self::default() };
        }
        let plain = words.iter().filter(|name| *name != "*");
        Self::of(plain.map(|name| view.shared_name(kind, name)).collect(), kind, view)
    }

    /// How many names it keeps in memory, which is not how many belong to it.
    pub(super) fn len(&self) -> usize {
        self.plus.len() + self.minus.len()
    }

    /// Whether everything that the view shows belongs to it.
    pub(super) fn whole(&self) -> bool {
        self.based && self.minus.is_empty()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self, kind: Kind, view: &View) -> bool {
        self.plus.is_empty() && (!self.based || view.names_digest(kind).count == self.minus.len())
    }

    /// Whether a name belongs to it.
    pub(super) fn contains(&self, name: &str, kind: Kind, view: &View) -> bool {
        self.plus.contains(name)
            || self.based && !self.minus.contains(name) && view.shows(kind, name)
    }

    /// Adds a name.
    pub(super) fn insert(&mut self, name: Arc<str>, kind: Kind, view: &View) {
        if !self.based || !view.shows(kind, &name) {
            self.plus.insert(name);
        } else {
            self.minus.remove(&name);
        }
    }

    /// Takes a name out. Tells whether it was there.
    pub(super) fn remove(&mut self, name: &str, kind: Kind, view: &View) -> bool {
        if self.plus.remove(name) {
            return true;
        }
        self.based && view.shows(kind, name) && self.minus.insert(view.shared_name(kind, name))
    }

    /// Those that the view does not show, and maybe others.
    pub(super) fn odd(&self) -> &BTreeSet<Arc<str>> {
        &self.plus
    }

    /// The digest that they would have with all that the view shows; `None` where they are too few.
    pub(super) fn completed(&self, kind: Kind, view: &View) -> Option<Digest> {
        let odd = || self.plus.iter().map(|name| Member::name(name));
        self.based.then(|| odd().fold(view.names_digest(kind), Digest::with))
    }

    /// Adds all that the view shows, and returns what of it is new.
    pub(super) fn complete(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.minus)
    }

    /// All of them.
    pub(super) fn all(&self, kind: Kind, view: &View) -> BTreeSet<Arc<str>> {
        if !self.based {
            return self.plus.clone();
        }
        let shown = view.names(kind).into_iter().filter(|name| !self.minus.contains(name));
        shown.chain(self.plus.iter().cloned()).collect()
    }

    /// Their digest.
    pub(super) fn digest(&self, kind: Kind, view: &View) -> Digest {
        let digest = if self.based { view.names_digest(kind) } else { Digest::default() };
        let digest = self.minus.iter().fold(digest, |sum, name| sum.without(Member::name(name)));
        self.plus.iter().fold(digest, |sum, name| sum.with(Member::name(name)))
    }

    /// The digest that names and versions have of a client that has all that belongs to it as the
    /// view shows it.
    pub(super) fn held(&self, kind: Kind, view: &View) -> Digest {
        let held = |name: &Arc<str>| Some(Member::held(name, view.version(kind, name)?));
        let digest = if self.based { view.held_digest(kind) } else { Digest::default() };
        let digest = self.minus.iter().filter_map(held).fold(digest, Digest::without);
        self.plus.iter().filter_map(held).fold(digest, Digest::with)
    }

    /// Keeps the set as it is while the view changes: in the names of `changed`, or anywhere.
    pub(super) fn follow(
        &mut self,
        kind: Kind,
        old: &View,
        new: &View,
        changed: Option<&BTreeSet<Arc<str>>>,
    ) {
        if !self.based {
            return;
        }
        let Some(changed) = changed else {
            *self = Self::of(self.all(kind, old), kind, new);
            return;
        };
        for name in changed {
            let (from, to) = match (old.shows(kind, name), new.shows(kind, name)) {
                (true, false) => (&mut self.minus, &mut self.plus),
                (false, true) => (&mut self.plus, &mut self.minus),
                _ => continue,
            };
            if !from.remove(name) {
                to.insert(name.clone());
            }
        }
    }
}
