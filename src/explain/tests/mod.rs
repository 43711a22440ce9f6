//! Explanations of small worlds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod names;
mod node_proxies;
mod property;
mod told;
mod world;
