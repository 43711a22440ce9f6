//! What the generator counts. Operations and outcomes are fixed sets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{Operation, Outcome};

/// The generator's metrics. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    writes: Family<[(&'static str, &'static str); 2], Counter>,
}

impl Metrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Attempts on mesh Services by operation (create, correct, delete) and outcome";
        registry.register("generator_attempts", help, self.writes.clone());
    }

    /// One operation came to this.
    pub fn did(&self, operation: &Operation, outcome: &Outcome) {
        let labels = [("operation", operation.as_str()), ("outcome", outcome.as_str())];
        self.writes.get_or_create(&labels).inc();
    }
}
