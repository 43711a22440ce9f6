//! Tests of the server, each named after its statement of the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

mod additions;
mod bytes;
mod checks;
mod clients;
mod delta;
mod interleaved;
mod limits;
mod load;
mod model;
mod names;
mod order;
mod random;
mod refusal;
mod removals;
mod retry;
mod rig;
mod served;
mod silent;
mod slow;
mod sotw;
mod statements;
mod streams;
mod tls;
mod vanished;
mod warm;
mod wire;
mod world;
mod worlds;
