//! The certificate that looks after itself, against a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod asked;
mod balancer;
mod rotation;
mod stage;
