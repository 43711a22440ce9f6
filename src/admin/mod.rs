//! Health and metrics over HTTP, for probes, Prometheus and people.
//!
//! `/livez` answers as long as the process does. `/readyz` says whether it can serve, and why not,
//! a line for each part; `/readyz/<part>` says it of one. `/metrics` is OpenMetrics text. Other parts
//! add [`Pages`] about what they do.

mod metrics;
mod pages;
mod routes;
mod server;
#[cfg(test)]
mod tests;

pub use metrics::Metrics;
pub use pages::{Asked, NoPage, Pages};
pub use server::{Admin, BindError};
