//! Kubernetes objects in, model out. Synchronous; never awaits.

mod object;

pub use object::{Change, Id, Object, ObjectKind};
