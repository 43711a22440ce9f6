//! What the resolver counts and measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_proto::rr::RecordType;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::answer::Outcome;
use super::query::Proto;
use super::table::Table;

/// Upper bounds of what an answer from the table takes, in seconds.
const QUICK: [f64; 9] = [1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// The same of an answer of an upstream.
const SLOW: [f64; 12] = [2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 0.5, 1.0, 2.5];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueryLabels {
    result: &'static str,
    proto: &'static str,
    qtype: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpstreamLabels {
    upstream: String,
}

/// All of them. Every label has a bounded set of values: no name that a client asked for is one.
#[derive(Debug)]
pub struct Metrics {
    queries: Family<QueryLabels, Counter>,
    mesh_seconds: Histogram,
    upstream_seconds: Family<UpstreamLabels, Histogram, fn() -> Histogram>,
    upstream_failures: Family<UpstreamLabels, Counter>,
    strange_responses: Counter,
    snapshot_written_at: Gauge,
    snapshot_generation: Gauge,
    snapshot_records: Gauge,
    snapshot_errors: Counter,
    snapshot_rejected: Gauge,
    selfcheck_success: Gauge,
    selfcheck_failures: Counter,
    connections: Gauge,
    cached: Gauge,
    under_way: Gauge,
    panics: Counter,
    /// When the table was written, in Unix seconds; 0 before there is one.
    written_at: Arc<AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let slow: fn() -> Histogram = || Histogram::new(SLOW);
        Self {
            queries: Family::default(),
            mesh_seconds: Histogram::new(QUICK),
            upstream_seconds: Family::new_with_constructor(slow),
            upstream_failures: Family::default(),
            strange_responses: Counter::default(),
            snapshot_written_at: Gauge::default(),
            snapshot_generation: Gauge::default(),
            snapshot_records: Gauge::default(),
            snapshot_errors: Counter::default(),
            snapshot_rejected: Gauge::default(),
            selfcheck_success: Gauge::default(),
            selfcheck_failures: Counter::default(),
            connections: Gauge::default(),
            cached: Gauge::default(),
            under_way: Gauge::default(),
            panics: Counter::default(),
            written_at: Arc::default(),
        }
    }

    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("mesh_dns");
        all.register_collector(Box::new(Age(self.written_at.clone())));
        all.register("queries", "Queries by what came of them", self.queries.clone());
        all.register(
            "mesh_seconds",
            "Time to answer a mesh name from the table",
            self.mesh_seconds.clone(),
        );
        all.register(
            "upstream_seconds",
            "Time that an upstream took to answer",
            self.upstream_seconds.clone(),
        );
        all.register(
            "upstream_failures",
            "Tries that an upstream did not answer in time, or where it could not be reached",
            self.upstream_failures.clone(),
        );
        all.register(
            "strange_responses",
            "Datagrams that answered nothing that was asked, and were dropped",
            self.strange_responses.clone(),
        );
        all.register(
            "snapshot_written_at",
            "When the snapshot file was written or stamped, in Unix seconds; 0 before the first",
            self.snapshot_written_at.clone(),
        );
        all.register(
            "snapshot_generation",
            "Generation of the snapshot file",
            self.snapshot_generation.clone(),
        );
        all.register(
            "snapshot_records",
            "Mesh names with addresses, short names not counted",
            self.snapshot_records.clone(),
        );
        all.register(
            "snapshot_errors",
            "Snapshot files that could not be used; the last good one was kept",
            self.snapshot_errors.clone(),
        );
        all.register(
            "snapshot_rejected",
            "Entries of the snapshot file that are left out",
            self.snapshot_rejected.clone(),
        );
        all.register(
            "selfcheck_answered_at",
            "When the resolver last answered itself, in Unix seconds",
            self.selfcheck_success.clone(),
        );
        all.register(
            "selfcheck_failures",
            "Times that the resolver did not answer itself",
            self.selfcheck_failures.clone(),
        );
        all.register("connections", "Open TCP connections", self.connections.clone());
        all.register("cached_answers", "Answers of upstreams that are kept", self.cached.clone());
        all.register("lookups", "Questions under way upstream", self.under_way.clone());
        all.register(
            "panics",
            "Packets whose handling failed in a way that it must not",
            self.panics.clone(),
        );
    }

    /// A query came to its end.
    pub fn query(&self, result: Outcome, proto: Proto, kind: Option<RecordType>) {
        let (result, proto, qtype) = (result.as_str(), proto.as_str(), type_name(kind));
        self.queries.get_or_create(&QueryLabels { result, proto, qtype }).inc();
    }

    /// A mesh name was answered within this time.
    pub fn mesh_answered(&self, took: Duration) {
        self.mesh_seconds.observe(took.as_secs_f64());
    }

    /// An upstream answered within this time.
    pub fn upstream_answered(&self, upstream: &str, took: Duration) {
        let labels = UpstreamLabels { upstream: upstream.to_owned() };
        self.upstream_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// An upstream did not answer.
    pub fn upstream_failed(&self, upstream: &str) {
        let labels = UpstreamLabels { upstream: upstream.to_owned() };
        self.upstream_failures.get_or_create(&labels).inc();
    }

    /// A datagram came that answers nothing.
    pub fn strange_response(&self) {
        self.strange_responses.inc();
    }

    /// There is a new table, or a new stamp on the old one.
    pub fn table(&self, table: &Table, rejected: usize) {
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.written_at.store(table.written_at, Ordering::Relaxed);
        self.snapshot_written_at.set(gauge(table.written_at));
        self.snapshot_generation.set(gauge(table.generation));
        self.snapshot_records.set(i64::try_from(table.len()).unwrap_or(i64::MAX));
        self.snapshot_rejected.set(i64::try_from(rejected).unwrap_or(i64::MAX));
    }

    /// A snapshot file could not be used.
    pub fn table_failed(&self) {
        self.snapshot_errors.inc();
    }

    /// The resolver asked itself.
    pub fn self_checked(&self, answered: bool) {
        if answered {
            self.selfcheck_success.set(i64::try_from(unix_now().as_secs()).unwrap_or(i64::MAX));
        } else {
            self.selfcheck_failures.inc();
        }
    }

    /// A connection was opened, or closed.
    pub fn connection(&self, opened: bool) {
        if opened {
            self.connections.inc()
        } else {
            self.connections.dec()
        };
    }

    /// So many questions are under way upstream.
    pub fn under_way(&self, lookups: usize) {
        self.under_way.set(i64::try_from(lookups).unwrap_or(i64::MAX));
    }

    /// So many answers are kept.
    pub fn kept(&self, answers: usize) {
        self.cached.set(i64::try_from(answers).unwrap_or(i64::MAX));
    }

    /// The handling of a packet panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }
}

/// The age of the snapshot file, worked out when it is asked for.
#[derive(Debug)]
struct Age(Arc<AtomicU64>);

impl Collector for Age {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let age = match self.0.load(Ordering::Relaxed) {
            0 => f64::NAN,
            at => unix_now().as_secs_f64() - Duration::from_secs(at).as_secs_f64(),
        };
        let help = "Seconds since the snapshot file was written or stamped; NaN before the first.";
        let name = "snapshot_age_seconds";
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(age).encode(encoder)
    }
}

#[cfg(test)]
impl Metrics {
    /// All of them as text.
    pub fn text(&self) -> String {
        let mut registry = Registry::with_prefix("aether");
        self.register(&mut registry);
        let mut out = String::new();
        // A `String` takes everything.
        let _ = prometheus_client::encoding::text::encode(&mut out, &registry);
        out
    }
}

/// The time since the epoch.
pub fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A type's name where it is a usual one, so that the label's values stay few.
fn type_name(kind: Option<RecordType>) -> &'static str {
    match kind {
        Some(RecordType::A) => "A",
        Some(RecordType::AAAA) => "AAAA",
        Some(RecordType::ANY) => "ANY",
        Some(RecordType::CNAME) => "CNAME",
        Some(RecordType::HTTPS) => "HTTPS",
        Some(RecordType::MX) => "MX",
        Some(RecordType::NS) => "NS",
        Some(RecordType::PTR) => "PTR",
        Some(RecordType::SOA) => "SOA",
        Some(RecordType::SRV) => "SRV",
        Some(RecordType::SVCB) => "SVCB",
        Some(RecordType::TXT) => "TXT",
        Some(_) => "other",
        None => "none",
    }
}

#[cfg(test)]
mod tests;
