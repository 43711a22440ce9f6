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

use super::clients::{Clients, Progress};
use super::stats::{Latency, PerKind, Pushes, Stats};
use super::{Kind, Snapshot, Standing};
use tokio::sync::watch;

/// What is read when the metrics are.
pub(super) struct Counters {
    pub(super) stats: Arc<Stats>,
    pub(super) clients: Arc<Clients>,
    pub(super) snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> Result<(), Error> {
        self.stats.fmt(f)
    }
}

impl Counters {
    /// Adds them to a registry, which reads them when it is read.
    pub(super) fn register(self, registry: &mut Registry) {
        registry.register_collector(Box::new(self));
    }
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let stats = &self.stats;
        gauge(&mut encoder, "xds_streams", "Streams that are open", &stats.streams)?;
        gauge(&mut encoder, "xds_connections", "Connections that are open", &stats.connections)?;
        counter(&mut encoder, "xds_streams_opened", "Streams ever opened", &stats.opened)?;
        counter(&mut encoder, "xds_requests", "Requests that were read", &stats.requests)?;
        let help = "Requests for a type that is not served";
        counter(&mut encoder, "xds_unknown_types", help, &stats.unknown_types)?;
        let help = "Streams refused for their node id";
        counter(&mut encoder, "xds_refused_nodes", help, &stats.refused_nodes)?;
        pushes(&mut encoder, &stats.responses)?;
        let help = "From a change of objects to the response that told a proxy of it";
        latency(&mut encoder, "xds_change_to_push_seconds", help, &stats.to_push)?;
        let help = "From a change of objects to the answer of a proxy that accepted it";
        latency(&mut encoder, "xds_change_to_ack_seconds", help, &stats.to_ack)?;
        self.of_clients(&mut encoder)?;
        self.of_snapshot(&mut encoder)?;
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

fn pushes(encoder: &mut DescriptorEncoder<'_>, pushes: &Pushes) -> Result<(), Error> {
    let help = "Responses sent, by type and by why they were";
    let mut family = encoder.encode_descriptor("xds_responses", help, None, MetricType::Counter)?;
    for kind in Kind::ALL {
        for (reason, count) in pushes.by_reason(kind) {
            let labels = [("type", kind.short_name()), ("reason", reason.as_str())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn latency(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    latency: &Latency,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (kind, histogram) in latency.histograms() {
        histogram.encode(family.encode_family(&[("type", kind.short_name())])?)?;
    }
    Ok(())
}

/// Gauges by type.
fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Kind, u64)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (kind, value) in values {
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(family.encode_family(&[("type", kind.short_name())])?)?;
    }
    Ok(())
}

impl Counters {
    fn of_clients(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let newest = self.snapshots.borrow().clone();
        let reports = self.clients.reports(newest.as_ref());
        let waiting = reports.iter().filter(|report| {
            matches!(report.standing, Some(Standing::Waiting | Standing::Forgotten))
        });
        let waiting = AtomicU64::new(waiting.count() as u64);
        let help = "Streams of nodes that are not known, or not managed";
        gauge(encoder, "xds_streams_waiting", help, &waiting)?;
        let of = |progress| {
            let all = reports.iter().flat_map(|report| &report.kinds);
            let all: Vec<_> = all.filter(|k| k.progress == progress).map(|k| k.kind).collect();
            let count = move |kind| all.iter().filter(|k| **k == kind).count() as u64;
            Kind::ALL.map(|kind| (kind, count(kind)))
        };
        let help = "Streams that do not have all of a type yet, or did not answer";
        gauges(encoder, "xds_streams_pending", help, of(Progress::Pending))?;
        let help = "Streams that refused what was sent of a type last";
        gauges(encoder, "xds_streams_refusing", help, of(Progress::Refused))
    }

    fn of_snapshot(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let newest = self.snapshots.borrow().clone();
        let sizes = newest.map(|newest| newest.sizes()).unwrap_or_default();
        let help = "Resources in the snapshot that is served; what proxies share counts once";
        let counts = sizes.iter().map(|(kind, size)| (*kind, size.resources));
        gauges(encoder, "snapshot_resources", help, counts)?;
        let help = "Bytes of these resources, encoded";
        let bytes = sizes.iter().map(|(kind, size)| (*kind, size.bytes));
        gauges(encoder, "snapshot_bytes", help, bytes)
    }
}
