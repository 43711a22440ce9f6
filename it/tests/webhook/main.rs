//! The webhook as the real API server calls it: which of its entries for which pod, how often, and what is stored.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod audit;
mod controllers;
mod injector;
mod kinds;
mod limits;
mod others;
mod stage;
mod stored;
