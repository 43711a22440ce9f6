//! Aether: the control plane that captures service-to-service traffic on Kubernetes.
//!
//! Data flows one way: objects come from a [`source`], the [`index`] makes a [`model`] of them,
//! [`capture`] projects it and [`translate`] turns the projection into Envoy's resources, which
//! [`xds`] serves. Nothing flows back but acknowledgements. What each part says of itself is gathered
//! in [`health`] and told by [`admin`]; what each proxy has, by [`status`].

pub mod admin;
pub mod admission;
pub mod api;
pub mod capture;
pub mod cli;
pub mod descriptors;
pub mod dns;
pub mod events;
pub mod explain;
pub mod generate;
pub mod health;
pub mod identity;
pub mod index;
pub mod leader;
pub mod model;
pub mod permissions;
#[cfg(test)]
mod random;
pub mod run;
pub mod source;
pub mod status;
pub mod translate;
pub mod xds;
