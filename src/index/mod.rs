//! Kubernetes objects in, model out. Synchronous; never awaits.
//!
//! [`Index::apply`] reads each object once into the facts that matter; [`Index::project`] makes
//! the whole projection of them, which depends on the facts alone and on no order of arrival.

mod advice;
mod changed;
mod claims;
mod endpoints;
mod facts;
mod keys;
mod object;
mod project;
mod read;
mod report;
mod settings;
mod store;
#[cfg(test)]
mod tests;

pub use keys::{FIELD_MANAGER, MANAGED};
pub use object::{Change, Id, Object, ObjectKind};
pub use settings::Settings;
pub use store::Index;

use report::Report;
