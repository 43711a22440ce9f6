//! The generator of mesh Services: a Service for each workload that has none.
//!
//! Pods that are in the mesh are found by name only where a Service stands for them. For each
//! ServiceAccount of running managed pods, and each namespace, that is made here unless a user's
//! Service claims its name: a ClusterIP Service without a selector, whose endpoints are those pods.
//!
//! A Service that was not created here is never written, whatever its labels say. So nothing is
//! applied: what is missing is created by POST, which fails where the name is taken; what has
//! drifted is read afresh, looked at again, and replaced by PUT with its resourceVersion; what has
//! no use any more is deleted with its uid and resourceVersion as preconditions.
//!
//! A Service keeps its ClusterIP and its short name for as long as it exists, so it outlives its
//! pods: by a day where its ServiceAccount is still there, by a minute where it is gone too.
//!
//! [`decide`] is pure: registry, state and time in, plan out. [`Generator`] acts, on the leader
//! alone. What it needs to be allowed: in all namespaces `get`, `create`, `update` and `delete` of
//! Services, `list` of Pods, and `get` of ServiceAccounts.

mod act;
mod api;
mod findings;
mod form;
mod kubernetes;
mod metrics;
mod plan;
mod state;
mod task;
#[cfg(test)]
mod tests;

pub use act::{Outcome, act};
pub use api::Services;
pub use kubernetes::Kubernetes;
pub use metrics::Metrics;
pub use plan::{Operation, Plan, Why, decide};
pub use state::{Periods, State};
pub use task::{Generator, Observer};
