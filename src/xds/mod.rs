//! A general xDS server: it serves any snapshot of named, versioned, encoded resources.
//!
//! It knows no mesh. With a snapshot of raw resources it serves anybody's configuration, and the
//! tests use it so. Resource types appear as type URLs and bytes alone.

mod kind;
mod resource;
mod rope;
mod snapshot;
mod table;
mod view;

pub use kind::Kind;
pub use resource::{Composed, Entry, Lens, Resource, Stem, Version};
pub use rope::{Rope, field};
pub use snapshot::{Group, NodeSpec, Own, Snapshot};
pub use table::Table;
pub use view::{Layer, View};
