//! Kubernetes objects in, model out. Synchronous; never awaits.

mod object;

pub use object::{Change, Id, Object, ObjectKind};

// PLACEHOLDER of the cli branch, from here on: dropped at the merge.
mod placeholder;
pub use placeholder::{Index, Settings};
