//! What the source counts. Labels are kinds, causes and verbs: bounded sets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::kinds::resource;
use super::trouble::Cause;
use crate::index::ObjectKind;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The source's metrics. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    objects: Family<Labels<1>, Gauge>,
    lists: Family<Labels<1>, Counter>,
    watches: Family<Labels<1>, Counter>,
    errors: Family<Labels<2>, Counter>,
    forbidden: Family<Labels<3>, Gauge>,
    updates: Counter,
}

impl Metrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let objects = "Objects of the API server that are known, by kind";
        registry.register("source_objects", objects, self.objects.clone());
        let lists = "Complete lists taken over, by kind: one at the start, and one whenever the API server no longer knew where a watch stood";
        registry.register("source_lists", lists, self.lists.clone());
        let watches = "Watches begun, by kind";
        registry.register("source_watches", watches, self.watches.clone());
        let errors = "Requests that failed, by kind and cause";
        registry.register("source_errors", errors, self.errors.clone());
        let forbidden =
            "1 for each permission that is missing now, by verb, API group and resource";
        registry.register("source_forbidden", forbidden, self.forbidden.clone());
        let updates = "Updates handed to the reconciler";
        registry.register("source_updates", updates, self.updates.clone());
    }

    pub(super) fn objects(&self, kind: ObjectKind, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.get_or_create(&[of(kind)]).set(count);
    }

    pub(super) fn listed(&self, kind: ObjectKind) {
        self.lists.get_or_create(&[of(kind)]).inc();
    }

    pub(super) fn watched(&self, kind: ObjectKind) {
        self.watches.get_or_create(&[of(kind)]).inc();
    }

    pub(super) fn failed(&self, kind: ObjectKind, cause: Cause) {
        self.errors.get_or_create(&[of(kind), ("cause", cause.as_str())]).inc();
    }

    pub(super) fn updated(&self) {
        self.updates.inc();
    }

    /// Sets which permissions are missing now.
    pub(super) fn causes(&self, causes: &[Cause]) {
        self.forbidden.clear();
        for cause in causes {
            if let Cause::Forbidden { verb, kind } = *cause {
                let (group, resource) = resource(kind);
                let labels = [("verb", verb), ("group", group), ("resource", resource)];
                self.forbidden.get_or_create(&labels).set(1);
            }
        }
    }
}

fn of(kind: ObjectKind) -> (&'static str, &'static str) {
    ("kind", kind.as_str())
}
