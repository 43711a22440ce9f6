//! What the webhook is set to.

mod gate;
mod image;
mod quantity;
#[cfg(test)]
mod tests;

pub use gate::{Gate, GateSpec, Problem, Problems, ResourceSpec};

use crate::index;

/// What shapes a decision, beside the review.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The mesh's domain, whose labels `ndots` counts, and the namespaces never touched: the same
    /// as those of the index, or the two would not agree on who is in the mesh.
    pub index: index::Settings,
    /// Whether the options of the resolver are set.
    pub pod_ndots: bool,
    /// The identity gate; `None`: no pod gets one.
    pub gate: Option<Gate>,
}

impl Settings {
    /// How many dots a name must have before it is tried as it is: as many as the labels of the
    /// mesh's domain, so that `<name>.<domain>` is asked first as what it is.
    pub fn ndots(&self) -> usize {
        self.index.names.domain().split('.').count()
    }
}

impl Default for Settings {
    /// The resolver's options, and no gate.
    fn default() -> Self {
        Self { index: index::Settings::default(), pod_ndots: true, gate: None }
    }
}
