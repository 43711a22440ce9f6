//! Tests of the server, each named after its statement of the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

mod delta;
mod model;
mod order;
mod random;
mod refusal;
mod rig;
mod sotw;
mod streams;
mod wire;
mod world;
