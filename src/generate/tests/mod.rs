//! The generator: single decisions, and many histories against an API server that behaves like the
//! real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod decisions;
mod fake;
mod histories;
mod keeps;
mod plane;
mod server;
mod terms;
mod words;
