//! Whether this process leads, as a metric.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Leadership;

impl Leadership {
    /// Adds the gauge `leader` to a registry. It is read by the clock, like a permit, and not by
    /// what the election said last.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Gauge(self.clone())));
    }
}

#[derive(Debug)]
struct Gauge(Leadership);

impl Collector for Gauge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help = "1 where this process leads and may write to the API server, else 0";
        let family = encoder.encode_descriptor("leader", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(self.0.is_leader())).encode(family)
    }
}
