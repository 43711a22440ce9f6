//! What is counted and shown of the certificates. No label is a name of anybody's.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::authority::{Authorities, Unix};

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The families. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    expiry: Family<Labels<1>, Gauge>,
    ready: Gauge,
    signed: Counter,
    writes: Family<Labels<2>, Counter>,
    rotations: Family<Labels<1>, Counter>,
    reloads: Family<Labels<1>, Counter>,
}

impl Metrics {
    /// Makes them part of a registry, whose prefix their names get.
    pub fn register(&self, registry: &mut Registry) {
        let webhook = registry.sub_registry_with_prefix("webhook");
        webhook.register(
            "certificate_expiry_timestamp_seconds",
            "When a certificate expires, in seconds since 1970: the one that is presented \
             (serving), the authority that signs (signing), and the next one (next)",
            self.expiry.clone(),
        );
        webhook.register(
            "ready",
            "1 where the certificate that is presented is trusted by API servers, else 0",
            self.ready.clone(),
        );
        webhook.register(
            "certificates_signed",
            "Certificates that this replica signed for itself",
            self.signed.clone(),
        );
        webhook.register(
            "certificate_writes",
            "Attempts to write, by object (secret, configuration) and outcome",
            self.writes.clone(),
        );
        webhook.register(
            "authority_steps",
            "Changes of the authorities that were written: begin, restore, adopt, prepare, promote, \
             forget, rotate",
            self.rotations.clone(),
        );
        webhook.register(
            "certificate_reloads",
            "Pairs of files that were taken (taken), or were broken while the last good one stays \
             (broken)",
            self.reloads.clone(),
        );
    }

    /// The certificate that is presented expires then.
    pub(super) fn serving(&self, until: Unix) {
        self.expires("serving", Some(until));
    }

    /// A certificate was signed, and expires then.
    pub(super) fn signed(&self, until: Unix) {
        self.signed.inc();
        self.serving(until);
    }

    /// These are the authorities.
    pub(super) fn authorities(&self, authorities: &Authorities) {
        let until = |pair: &Option<super::Pair>| pair.as_ref().map(|pair| pair.authority.until);
        self.expires("signing", until(&authorities.signing));
        self.expires("next", until(&authorities.next));
    }

    fn expires(&self, which: &'static str, until: Option<Unix>) {
        let labels = [("certificate", which)];
        match until {
            Some(until) => {
                let until = i64::try_from(until).unwrap_or(i64::MAX);
                self.expiry.get_or_create(&labels).set(until);
            }
            None => drop(self.expiry.remove(&labels)),
        }
    }

    /// Whether it is ready.
    pub(super) fn ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// A write of this object came to this.
    pub(super) fn wrote(&self, object: &'static str, outcome: &'static str) {
        self.writes.get_or_create(&[("object", object), ("outcome", outcome)]).inc();
    }

    /// The authorities were changed so.
    pub(super) fn step(&self, step: super::Step) {
        self.rotations.get_or_create(&[("step", step.as_str())]).inc();
    }

    /// A pair of files was looked at.
    pub(super) fn reloaded(&self, outcome: &'static str) {
        self.reloads.get_or_create(&[("outcome", outcome)]).inc();
    }
}
