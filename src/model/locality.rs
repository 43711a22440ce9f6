//! Where something runs.

use std::sync::Arc;

/// A region and a zone, as `topology.kubernetes.io/region` and `/zone` name them. An empty region
/// with a zone is what a slice's own zone gives where its node is missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Locality {
    /// The region, or empty.
    pub region: Arc<str>,
    /// The zone, or empty.
    pub zone: Arc<str>,
}

impl Locality {
    /// A locality of a region and a zone, either of which may be empty.
    pub fn new(region: impl Into<Arc<str>>, zone: impl Into<Arc<str>>) -> Self {
        Self { region: region.into(), zone: zone.into() }
    }
}

/// From where a proxy looks at endpoints: its node, and that node's locality where it is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// The node's name; `None` before the pod is scheduled.
    pub node: Option<Arc<str>>,
    /// The node's locality; `None` where the node is unknown or names neither region nor zone.
    pub locality: Option<Locality>,
}
