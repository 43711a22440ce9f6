//! Tests of the server, each named after its statement of the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

mod bytes;
mod delta;
mod model;
mod order;
mod random;
mod refusal;
mod rig;
mod served;
mod sotw;
mod streams;
mod vanished;
mod wire;
mod world;
