//! The metrics of all parts, in one registry.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::health::{Health, State};

/// The content type of OpenMetrics text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The registry that every part adds its families to. Names start with `aether_`.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Registry::with_prefix("aether"))))
    }
}

impl Metrics {
    /// Lets a part add its families. Nothing may be added twice.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All metrics as OpenMetrics text.
    ///
    /// # Errors
    /// Where a part's own collector fails.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }

    /// Adds how each part is: 1 for the state that it is in, 0 for the others.
    pub fn add_health(&self, health: &Health) {
        let collector = HealthCollector(health.clone());
        self.register(|registry| registry.register_collector(Box::new(collector)));
    }
}

#[derive(Debug)]
struct HealthCollector(Health);

impl prometheus_client::collector::Collector for HealthCollector {
    fn encode(
        &self,
        mut encoder: prometheus_client::encoding::DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        use prometheus_client::encoding::EncodeMetric;
        use prometheus_client::metrics::MetricType;
        use prometheus_client::metrics::gauge::ConstGauge;

        let help = "How each part of the process is: 1 for its state, 0 for the others";
        let mut family = encoder.encode_descriptor("part_state", help, None, MetricType::Gauge)?;
        for (part, state) in self.0.states() {
            let now = match state {
                State::Waiting(_) => "waiting",
                State::Ready => "ready",
                State::Degraded(_) => "degraded",
            };
            for state in ["waiting", "ready", "degraded"] {
                let labels = [("part", part), ("state", state)];
                let gauge = ConstGauge::new(i64::from(state == now));
                gauge.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
