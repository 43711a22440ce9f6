#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod beside;
mod configs;
mod matchers;
mod reflected;
mod shown;
mod world;
