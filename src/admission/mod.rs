//! The pod-mutating webhook: a review in, a decision out, a patch out.
//!
//! [`decide()`] and [`patch()`] are pure and need nothing but the review: the path on which it came
//! says whether the pod's own label or its namespace's brought it. [`server`] is the thin part
//! around them that speaks HTTPS, with a certificate of [`certs`]. The same pure parts serve `aether inject`, by [`workload`].

pub mod answer;
pub mod certs;
pub mod decide;
mod keys;
mod lean;
pub mod metrics;
mod patch;
mod pod;
pub mod review;
pub mod server;
pub mod settings;
pub mod workload;

pub use decide::{Decision, decide, decide_pod};
pub use patch::patch;
pub use pod::{Pod, Shape};
pub use review::{Entry, Review, ReviewError};
pub use settings::{Gate, Settings};

#[cfg(test)]
mod tests;
