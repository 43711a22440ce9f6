//! The election, as a table of single steps and as many processes in a world of faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod faults;
mod permits;
mod server;
mod steps;
mod world;
