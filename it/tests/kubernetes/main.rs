//! `aether serve` against a real API server: what it serves, how soon, and on bad days.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod churn;
mod envoy;
mod in_pod;
mod latency;
mod odd;
mod outages;
mod same;
mod scale;
mod stage;
mod start;
