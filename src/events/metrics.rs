//! What is counted of events. Reasons and outcomes are fixed sets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::EventReason;

/// The metrics of events. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    events: Family<[(&'static str, &'static str); 2], Counter>,
    dropped: Counter,
}

impl Metrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let events = "Events by reason and outcome: created, repeated, gone (their object is), forbidden or failed";
        registry.register("events", events, self.events.clone());
        let dropped =
            "Events that were never written, since their object or all of them had too many";
        registry.register("events_dropped", dropped, self.dropped.clone());
    }

    pub(super) fn wrote(&self, reason: EventReason, outcome: &'static str) {
        self.events.get_or_create(&[("reason", reason.name), ("outcome", outcome)]).inc();
    }

    pub(super) fn dropped(&self, count: u64) {
        self.dropped.inc_by(count);
    }
}
