//! The reconciler: objects to projection to snapshot.
//!
//! [`Reconciler`] decides and [`spawn`] acts: it takes what a source has queued, all at once, and
//! publishes what came of it. Quick when quiet, batching under load, with no fixed delay.

mod held;
mod metrics;
pub mod names;
mod reconciler;
mod task;
#[cfg(test)]
mod tests;

pub use metrics::Metrics;
pub use reconciler::{Outcome, Reconciler};
pub use task::{Inbox, Question, spawn};
