//! The counters as metrics.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Kind;
use super::limits::Denial;
use super::stats::{PerKind, Stats};

impl Stats {
    /// Adds the counters to a registry, which reads them when it is read.
    pub fn register(self: Arc<Self>, registry: &mut Registry) {
        registry.register_collector(Box::new(Counters(self)));
    }
}

#[derive(Debug)]
struct Counters(Arc<Stats>);

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let stats = &self.0;
        gauge(&mut encoder, "xds_streams", "Streams that are open", &stats.streams)?;
        gauge(&mut encoder, "xds_connections", "Connections that are open", &stats.connections)?;
        counter(&mut encoder, "xds_streams_opened", "Streams ever opened", &stats.opened)?;
        counter(&mut encoder, "xds_requests", "Requests that were read", &stats.requests)?;
        let help = "Requests for a type that is not served";
        counter(&mut encoder, "xds_unknown_types", help, &stats.unknown_types)?;
        let help = "Streams refused for their node id";
        counter(&mut encoder, "xds_refused_nodes", help, &stats.refused_nodes)?;
        let help = "Connections ended for their age, so that they are made anew";
        counter(&mut encoder, "xds_aged_connections", help, &stats.aged)?;
        refused(&mut encoder, stats)?;
        by_type(&mut encoder, "xds_responses", "Responses sent", &stats.responses)?;
        by_type(&mut encoder, "xds_response_bytes", "Bytes of responses sent", &stats.bytes)?;
        by_type(&mut encoder, "xds_refusals", "Responses that a client refused", &stats.nacks)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: &AtomicU64,
) -> Result<(), Error> {
    let gauge = ConstGauge::new(i64::try_from(value.load(Relaxed)).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: &AtomicU64,
) -> Result<(), Error> {
    let counter = ConstCounter::new(value.load(Relaxed));
    counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn refused(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> Result<(), Error> {
    let help = "Connections, streams and requests that were refused, by reason";
    let mut family = encoder.encode_descriptor("xds_refused", help, None, MetricType::Counter)?;
    for reason in Denial::ALL {
        let labels = [("reason", reason.as_str())];
        ConstCounter::new(stats.refused.get(reason)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn by_type(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: &PerKind,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for kind in Kind::ALL {
        let labels = [("type", kind.short_name())];
        ConstCounter::new(values.get(kind)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
