//! The proxy's own resources, decoded, and matched as Envoy matches them. Nothing here knows the
//! rules by which they were made.

mod chains;
mod cluster;
mod format;
mod leads;
mod listener;
mod names;
mod resources;
mod routes;

pub(super) use chains::Arrival;
pub(super) use cluster::{Http, Upstream, Whither, targets};
pub(super) use leads::{Leads, reply};
pub(super) use listener::Inspects;
pub(super) use names::NamesListener;
pub use resources::Undecodable;
pub(super) use resources::{Capture, assignment, cluster, routes};
pub(super) use routes::{Routed, route};
