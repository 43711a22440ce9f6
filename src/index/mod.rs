//! Kubernetes objects in, model out. Synchronous; never awaits.
//!
//! [`Index::apply`] reads each object once into the facts that matter; [`Index::project`] makes
//! the whole projection of them, which depends on the facts alone and on no order of arrival.

mod about;
mod advice;
mod changed;
mod claims;
mod endpoints;
mod facts;
mod keys;
mod object;
mod pods;
mod project;
mod read;
mod registry;
mod report;
mod settings;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod told;
mod upstreams;

pub use about::{About, Behind};
pub use facts::{IpRange, OtherService, PodFacts, PortFacts, RedirectionFacts, ServiceFacts};
pub use keys::{
    APP_PROTOCOL, EXCLUDE_PORTS, EXCLUDE_RANGES, FIELD_MANAGER, GENERATED_FOR, MANAGED,
    MESH_SERVICE, PORT, REDIRECT_ALL, SERVICE, UPSTREAMS,
};
pub use object::{Change, Id, Object, ObjectKind};
pub use read::{generated, is_generated, is_present, mesh_name_of};
pub use settings::Settings;
pub use store::Index;

use report::Report;
