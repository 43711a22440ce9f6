//! What is counted of the files.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Unix;

/// The families. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    expiry: Gauge,
    reloads: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Metrics {
    /// Makes them part of a registry, with names that begin so.
    pub fn register(&self, registry: &mut Registry, prefix: &str) {
        let of = registry.sub_registry_with_prefix(prefix);
        of.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate that is presented expires, in seconds since 1970",
            self.expiry.clone(),
        );
        of.register(
            "reloads",
            "Files that were taken (taken), or were broken while the last good ones stay (broken)",
            self.reloads.clone(),
        );
    }

    /// The certificate that is presented expires then.
    pub fn expires(&self, until: Unix) {
        self.expiry.set(i64::try_from(until).unwrap_or(i64::MAX));
    }

    /// Files were looked at.
    pub fn reloaded(&self, outcome: &'static str) {
        self.reloads.get_or_create(&[("outcome", outcome)]).inc();
    }
}
