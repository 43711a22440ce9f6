//! The resolver as its clients know it: real resolvers of several languages, dig, dnsperf, and those who mean no good.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod abuse;
mod clients;
mod dig;
mod files;
mod hand_over;
mod listen;
mod stage;
mod upstream;
