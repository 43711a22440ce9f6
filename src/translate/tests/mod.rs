//! Tests of the translation as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod chains;
mod changes;
mod client;
mod clusters;
mod dns;
mod endpoints;
mod hosts;
mod node_groups;
mod nodes;
mod property;
mod scope;
mod scope_property;
mod world;
