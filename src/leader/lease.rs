//! The Lease object: what the election reads of it, and the forms that it writes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::{Record, Settings};

/// What the election reads of a Lease.
pub(super) fn record(lease: Lease) -> Record<Lease> {
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        version: lease.metadata.resource_version.as_deref().unwrap_or_default().into(),
        holder: holder.filter(|holder| !holder.is_empty()).map(Arc::from),
        duration: seconds.map(Duration::from_secs),
        body: lease,
    }
}

/// A Lease that there was not before, held by `identity`.
pub(super) fn new(name: &str, identity: &str, settings: &Settings, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let lease = Lease { metadata, spec: None };
    held(lease, identity, settings, now)
}

/// The same Lease, held by `identity`. All that others put there stays. The times are for people:
/// nobody judges by them.
pub(super) fn held(mut lease: Lease, identity: &str, settings: &Settings, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if spec.holder_identity.as_deref() != Some(identity) {
        let transitions = spec.lease_transitions.map_or(0, |count| count.saturating_add(1));
        spec.lease_transitions = Some(transitions.max(0));
        spec.acquire_time = Some(MicroTime(now));
        spec.holder_identity = Some(identity.to_owned());
    }
    let seconds = i32::try_from(settings.duration.as_secs()).unwrap_or(i32::MAX);
    spec.lease_duration_seconds = Some(seconds);
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// The same Lease, held by nobody, so that candidates need not wait.
pub(super) fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    // Empty as others' controllers write it; the API server takes null as well.
    spec.holder_identity = Some(String::new());
    spec.renew_time = Some(MicroTime(now));
    lease
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_keeps_what_others_put_there() {
        let settings = Settings::default();
        let first = new("aether", "a", &settings, Timestamp::from_second(10).unwrap());
        let mut lease = serde_json::to_value(&first).unwrap();
        assert_eq!(lease["spec"]["leaseTransitions"], 0);
        lease["metadata"]["resourceVersion"] = "7".into();
        lease["metadata"]["labels"] = json!({ "team": "mesh" });
        lease["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }]);
        let lease: Lease = serde_json::from_value(lease).unwrap();

        let renewed = held(lease.clone(), "a", &settings, Timestamp::from_second(12).unwrap());
        let renewed = serde_json::to_value(renewed).unwrap();
        assert_eq!(renewed["spec"]["acquireTime"], "1970-01-01T00:00:10.000000Z");
        assert_eq!(renewed["spec"]["renewTime"], "1970-01-01T00:00:12.000000Z");
        assert_eq!(renewed["spec"]["leaseDurationSeconds"], 15);
        let taken = held(lease.clone(), "b", &settings, Timestamp::from_second(30).unwrap());
        let taken = serde_json::to_value(taken).unwrap();
        assert_eq!(taken["spec"]["leaseTransitions"], 1);
        assert_eq!(taken["spec"]["acquireTime"], "1970-01-01T00:00:30.000000Z");
        let left = released(lease.clone(), Timestamp::from_second(40).unwrap());
        assert_eq!(record(left.clone()).holder, None);
        let left = serde_json::to_value(left).unwrap();
        for lease in [renewed, taken, left] {
            assert_eq!(lease["metadata"]["resourceVersion"], "7");
            assert_eq!(lease["metadata"]["labels"]["team"], "mesh");
            assert_eq!(lease["metadata"]["ownerReferences"][0]["name"], "p");
        }
    }

    #[test]
    fn strange_leases_are_read() {
        let read = |spec: serde_json::Value| {
            let lease = json!({ "metadata": { "resourceVersion": "9" }, "spec": spec });
            record(serde_json::from_value(lease).unwrap())
        };
        assert_eq!(read(json!(null)).holder, None);
        assert_eq!(read(json!({ "holderIdentity": "" })).holder, None);
        let odd = read(json!({ "holderIdentity": "x", "leaseDurationSeconds": -5 }));
        assert_eq!((odd.holder.as_deref(), odd.duration, &*odd.version), (Some("x"), None, "9"));
        assert_eq!(
            read(json!({ "leaseDurationSeconds": 3 })).duration,
            Some(Duration::from_secs(3))
        );
    }
}
