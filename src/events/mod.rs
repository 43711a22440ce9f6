//! Kubernetes events (`events.k8s.io/v1`) about the objects that something is wrong with, so that
//! whoever looks at an object with `kubectl describe` sees it there.
//!
//! What is wrong with objects is written by the leader; that a proxy refused something, by the
//! replica that holds its stream. Reasons are a fixed list, told in `docs/events.md`. What lasts is
//! told once, and again before the API server forgets it; what comes back is counted, not told
//! anew; and there is a limit on events of all objects together and of each alone. [`plan`] is
//! pure; [`Recorder`] writes.
//!
//! What it needs to be allowed, in all namespaces: `create`, `get` and `patch` of Events, and
//! `list` of the kinds that findings are about, which it follows anyway.

mod history;
mod metrics;
mod object;
mod plan;
mod reason;
mod recorder;
mod regarding;
#[cfg(test)]
mod tests;

pub use history::{History, Limits};
pub use metrics::Metrics;
pub use plan::{Plan, Write, plan};
pub use reason::{EventReason, Kind, Message};
pub use recorder::{Recorder, Refusals};
