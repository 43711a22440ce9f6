//! What the reconciler counts.

use std::collections::BTreeSet;

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::Outcome;
use crate::model::{Finding, Projection, Severity};
use crate::xds::{Fate, Grounds, Snapshot};

/// The reconciler's metrics. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    findings: Family<OfFinding, Gauge>,
    quarantined: Gauge,
    round: Histogram,
    failed: Counter,
    trials: Family<OfTrial, Counter>,
    generation: Gauge,
    services: Gauge,
    pods: Gauge,
}

/// A finding's labels: both from a bounded set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OfFinding {
    severity: String,
    reason: &'static str,
}

impl EncodeLabelSet for OfFinding {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        let labels = [("severity", self.severity.as_str()), ("reason", self.reason)];
        labels.encode(encoder)
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OfTrial {
    outcome: &'static str,
}

impl EncodeLabelSet for OfTrial {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("outcome", self.outcome)].encode(encoder)
    }
}

impl From<&Fate> for OfTrial {
    fn from(fate: &Fate) -> Self {
        let outcome = match fate {
            Fate::Released(_, Grounds::Unasked) => "unasked",
            Fate::Released(_, Grounds::Accepted) => "accepted",
            Fate::Released(_, Grounds::TimePassed) => "time_passed",
            Fate::Refused { .. } => "refused",
        };
        Self { outcome }
    }
}

impl From<&Finding> for OfFinding {
    fn from(finding: &Finding) -> Self {
        Self { severity: finding.severity.to_string(), reason: finding.reason.as_str() }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            findings: Family::default(),
            quarantined: Gauge::default(),
            // From 100 µs to 1.6 s.
            round: Histogram::new(exponential_buckets(0.0001, 2.0, 15)),
            failed: Counter::default(),
            trials: Family::default(),
            generation: Gauge::default(),
            services: Gauge::default(),
            pods: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "findings",
            "What is wrong with objects at this time, by severity and reason",
            self.findings.clone(),
        );
        registry.register(
            "quarantined_objects",
            "Objects of which something is left out at this time",
            self.quarantined.clone(),
        );
        registry.register_with_unit(
            "reconcile_duration",
            "From the oldest queued update to the snapshot made of it",
            Unit::Seconds,
            self.round.clone(),
        );
        registry.register(
            "reconcile_failures",
            "Rounds of the reconciler that failed in a way that they must not",
            self.failed.clone(),
        );
        registry.register(
            "canary_trials",
            "Snapshots that were tried on a few proxies first, by how that ended",
            self.trials.clone(),
        );
        registry.register(
            "snapshot_generation",
            "How many snapshots this process has published",
            self.generation.clone(),
        );
        registry.register("services", "Services that are captured", self.services.clone());
        registry.register("pods", "Pods that are in the mesh", self.pods.clone());
    }

    pub(super) fn failed(&self) {
        self.failed.inc();
    }

    pub(super) fn heard(&self, fate: &Fate) {
        self.trials.get_or_create(&fate.into()).inc();
    }

    pub(super) fn round(&self, outcome: &Outcome, took: std::time::Duration) {
        self.round.observe(took.as_secs_f64());
        if let Some(all) = &outcome.findings {
            let problems = all.iter().filter(|finding| finding.severity == Severity::Problem);
            let objects: BTreeSet<_> = problems.map(|finding| &finding.object).collect();
            self.quarantined.set(i64::try_from(objects.len()).unwrap_or(i64::MAX));
        }
        for finding in &outcome.appeared {
            self.findings.get_or_create(&finding.into()).inc();
        }
        for finding in &outcome.vanished {
            self.findings.get_or_create(&finding.into()).dec();
        }
    }

    pub(super) fn published(&self, snapshot: &Snapshot, projection: Option<&Projection>) {
        self.generation.set(i64::try_from(snapshot.generation).unwrap_or(i64::MAX));
        if let Some(projection) = projection {
            self.services.set(i64::try_from(projection.services.len()).unwrap_or(i64::MAX));
            self.pods.set(i64::try_from(projection.pods.len()).unwrap_or(i64::MAX));
        }
    }
}
