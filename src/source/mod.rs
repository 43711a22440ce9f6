//! Where objects come from: a Kubernetes API server, or a folder of manifests. Nothing beyond knows
//! which one it is.

pub mod folder;
pub mod kubernetes;
pub mod manifest;
pub mod pins;

use crate::index::Change;
use crate::model::Finding;

/// What a source has to say. The first update of a source is its first complete state.
#[derive(Debug, Clone, Default)]
pub struct Update {
    /// The changes since the update before, to be applied in order.
    pub changes: Vec<Change>,
    /// All that the source itself finds wrong at this time: what it could not read, and what
    /// stands twice. It replaces the findings of the update before.
    pub findings: Vec<Finding>,
}
