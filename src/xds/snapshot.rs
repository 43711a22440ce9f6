//! The snapshot: everything that is served, immutable, replaced whole by its one writer.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use super::listing::Listings;
use super::{Kind, Layer, Lens, Stem};

/// A resource of one node alone: a head of its own before a stem that others share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The type.
    pub kind: Kind,
    /// The resource's name, which the head bears too.
    pub name: Arc<str>,
    /// The encoded fields of its own.
    pub head: Bytes,
    /// The key of its tail in [`Snapshot::stems`].
    pub stem: Arc<str>,
}

/// What tells one node's view from another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// The key of its tables in [`Snapshot::groups`].
    pub group: Arc<str>,
    /// Whom its peer has to prove to be, in words that only who made the snapshot and who vouches for
    /// peers understand.
    pub identity: Option<Arc<str>>,
    /// The words that select forms, the most telling first.
    pub lenses: Vec<Lens>,
    /// Its own resources.
    pub own: Vec<Own>,
    /// Whether what of its own it refuses is sent again by and by, since what it lacked may come
    /// later.
    pub retry: bool,
}

/// The tables that a group of nodes sees: by type, the first layer that has a name counts.
#[derive(Debug, Default)]
pub struct Group {
    layers: BTreeMap<Kind, Vec<Layer>>,
    listings: BTreeMap<Kind, Listings>,
}

impl Group {
    /// A group of layers by type.
    pub fn new(layers: BTreeMap<Kind, Vec<Layer>>) -> Self {
        let listings = layers.keys().map(|kind| (*kind, Listings::default())).collect();
        Self { layers, listings }
    }

    /// All that some groups see, side by side: of each type the layers of one group after those of
    /// another, each once.
    pub fn union(groups: impl IntoIterator<Item = Arc<Self>>) -> Self {
        let mut union: BTreeMap<Kind, Vec<Layer>> = BTreeMap::new();
        for group in groups {
            for (kind, layers) in &group.layers {
                let all = union.entry(*kind).or_default();
                for layer in layers {
                    if !all.iter().any(|known| known.is(layer)) {
                        all.push(layer.clone());
                    }
                }
            }
        }
        Self::new(union)
    }

    /// The layers of a type.
    pub fn layers(&self, kind: Kind) -> &[Layer] {
        self.layers.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// What is known of a type as the group sees it.
    pub(super) fn listings(&self, kind: Kind) -> Option<&Listings> {
        self.listings.get(&kind)
    }
}

/// Everything that is served at one time.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Rises with every snapshot.
    pub generation: u64,
    /// How many refusals by canaries its writer had heard of when it was made.
    pub heard: u64,
    /// Node by id.
    pub nodes: OrdMap<Arc<str>, Arc<NodeSpec>>,
    /// Group by key.
    pub groups: BTreeMap<Arc<str>, Arc<Group>>,
    /// Stem by key.
    pub stems: BTreeMap<Arc<str>, Stem>,
    /// What it was made of, for its writer, who hears of its fate; it means nothing to this module.
    pub origin: Option<Arc<dyn Any + Send + Sync>>,
}
