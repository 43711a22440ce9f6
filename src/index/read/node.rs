//! Reading a Node.

use k8s_openapi::api::core::v1::Node;

use super::values;
use crate::index::facts::NodeFacts;
use crate::index::keys;
use crate::model::Locality;

/// The locality that a node's topology labels give; `None` where they give neither part.
pub fn node(node: &Node) -> NodeFacts {
    let label = |key| values::of(node.metadata.labels.as_ref(), key).unwrap_or_default();
    let (region, zone) = (label(keys::REGION), label(keys::ZONE));
    (!region.is_empty() || !zone.is_empty()).then(|| Locality::new(region, zone))
}
