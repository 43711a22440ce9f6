//! What the webhook counts. Every label has a fixed set of values; none is a pod's.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Entry;
use super::decide::{Decision, GateStep, Place};

/// The families of the webhook.
#[derive(Debug, Clone)]
pub struct Metrics {
    reviews: Family<ReviewLabels, Counter>,
    faults: Family<ReasonLabels, Counter>,
    gates: Family<GateLabels, Counter>,
    resolvers: Family<ReasonLabels, Counter>,
    failures: Family<ReasonLabels, Counter>,
    duration: Histogram,
    in_flight: Gauge,
}

/// Which review, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    entry: &'static str,
    outcome: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GateLabels {
    result: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Why a request had no answer from a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No such path.
    Path,
    /// Another method than POST.
    Method,
    /// Another content type than JSON.
    ContentType,
    /// A body above the limit.
    TooLarge,
    /// A body that ended early.
    Incomplete,
    /// No review that can be read.
    Unreadable,
    /// More requests, or more bytes, than are taken at once.
    Overloaded,
    /// It took longer than the API server would have waited.
    TimedOut,
    /// Our own fault.
    Internal,
}

impl Failure {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::TooLarge => "too_large",
            Self::Incomplete => "incomplete",
            Self::Unreadable => "unreadable",
            Self::Overloaded => "overloaded",
            Self::TimedOut => "timed_out",
            Self::Internal => "internal",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        // From a tenth of a millisecond to the API server's patience of five seconds.
        let buckets = [
            0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
            2.5, 5.0,
        ];
        Self {
            reviews: Family::default(),
            faults: Family::default(),
            gates: Family::default(),
            resolvers: Family::default(),
            failures: Family::default(),
            duration: Histogram::new(buckets),
            in_flight: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Makes them part of a registry, whose prefix their names get.
    pub fn register(&self, registry: &mut Registry) {
        let webhook = registry.sub_registry_with_prefix("webhook");
        webhook.register(
            "reviews",
            "Reviews answered, by the entry that brought them, what became of the pod, and why",
            self.reviews.clone(),
        );
        webhook.register(
            "denial_faults",
            "What was wrong with the pods that were denied, each fault counted",
            self.faults.clone(),
        );
        webhook.register(
            "identity_gates",
            "What became of the identity gate in the reviews of managed pods, and why",
            self.gates.clone(),
        );
        webhook.register(
            "resolvers_left",
            "Managed pods whose resolver was left as it is, in whole or in part, by reason",
            self.resolvers.clone(),
        );
        webhook.register(
            "failures",
            "Requests without a decision, to which the API server applies the failure policy",
            self.failures.clone(),
        );
        webhook.register(
            "duration_seconds",
            "From the headers of a request to its answer",
            self.duration.clone(),
        );
        webhook.register("in_flight", "Requests that are being answered", self.in_flight.clone());
    }

    /// Counts a decision.
    pub fn decided(&self, entry: Entry, decision: &Decision) {
        let (outcome, reason) = match decision {
            Decision::Untouched(why) => ("untouched", why.as_str()),
            Decision::Denied(_) => ("denied", "unix_socket"),
            Decision::Managed(managed) if managed.is_done() => ("unchanged", "has_everything"),
            Decision::Managed(_) => ("patched", "managed"),
        };
        let labels = ReviewLabels { entry: entry.as_str(), outcome, reason };
        self.reviews.get_or_create(&labels).inc();
        match decision {
            Decision::Denied(denial) => {
                for fault in &denial.faults {
                    let labels = ReasonLabels { reason: fault.kind.as_str() };
                    self.faults.get_or_create(&labels).inc();
                }
            }
            Decision::Managed(managed) => {
                self.gates.get_or_create(&gate_labels(&managed.gate)).inc();
                if let Some(left) = managed.resolver.left {
                    let labels = ReasonLabels { reason: left.as_str() };
                    self.resolvers.get_or_create(&labels).inc();
                }
            }
            Decision::Untouched(_) => {}
        }
    }

    /// Counts a request that had no decision.
    pub fn failed(&self, failure: Failure) {
        self.failures.get_or_create(&ReasonLabels { reason: failure.as_str() }).inc();
    }

    /// Takes the time of a request.
    pub fn took(&self, time: Duration) {
        self.duration.observe(time.as_secs_f64());
    }

    /// Counts a request as being answered for as long as the value lives.
    pub fn enter(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn gate_labels(gate: &GateStep) -> GateLabels {
    let (result, reason) = match gate {
        GateStep::Off => ("none", "off"),
        GateStep::Skipped(skip) => ("none", skip.as_str()),
        GateStep::Present { container: Place::Add(_), .. } => ("added", "managed"),
        GateStep::Present { container: Place::MoveFrom(_), .. } => ("moved", "behind_another"),
        GateStep::Present { container: Place::Keep, .. } => ("kept", "has_everything"),
    };
    GateLabels { result, reason }
}
