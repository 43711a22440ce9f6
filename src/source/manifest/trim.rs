//! Objects without what the mesh never looks at, such as a pod's containers or who set a field:
//! it costs memory, and a change of it is no change to the mesh.

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

use crate::index::{FIELD_MANAGER, Object};

/// The driver of the volumes that a pod's Unix socket may lie in.
const CSI_DRIVER: &str = "csi.aether.io";

/// Drops from an object whatever the mesh does not look at.
pub fn trim(object: &mut Object) {
    match object {
        Object::Namespace(namespace) => {
            trim_meta(&mut namespace.metadata);
            namespace.spec = None;
            namespace.status = None;
        }
        Object::Node(node) => {
            trim_meta(&mut node.metadata);
            node.spec = None;
            node.status = None;
        }
        Object::ServiceAccount(account) => {
            trim_meta(&mut account.metadata);
            account.secrets = None;
            account.image_pull_secrets = None;
            account.automount_service_account_token = None;
        }
        Object::Service(service) => {
            // Who wrote the Service tells one that we generated from one that only looks so.
            let ours = ours(service.metadata.managed_fields.take());
            trim_meta(&mut service.metadata);
            service.metadata.managed_fields = ours;
            service.status = None;
        }
        Object::EndpointSlice(slice) => trim_meta(&mut slice.metadata),
        Object::Pod(pod) => trim_pod(pod),
    }
}

fn trim_meta(meta: &mut ObjectMeta) {
    let annotations = meta.annotations.take().map(|mut annotations| {
        annotations.retain(|key, _| is_ours(key));
        annotations
    });
    *meta = ObjectMeta {
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        uid: meta.uid.take(),
        labels: meta.labels.take().filter(|labels| !labels.is_empty()),
        annotations: annotations.filter(|annotations| !annotations.is_empty()),
        creation_timestamp: meta.creation_timestamp.take(),
        deletion_timestamp: meta.deletion_timestamp.take(),
        ..ObjectMeta::default()
    };
}

/// That our manager owns fields of the object, without which ones and since when.
fn ours(entries: Option<Vec<ManagedFieldsEntry>>) -> Option<Vec<ManagedFieldsEntry>> {
    let manager = Some(FIELD_MANAGER.to_owned());
    let ours = entries?.iter().any(|entry| entry.manager == manager);
    ours.then(|| vec![ManagedFieldsEntry { manager, ..ManagedFieldsEntry::default() }])
}

/// Whether an annotation is one of the project's: `aether.io/…` or `….aether.io/…`.
fn is_ours(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    prefix.strip_suffix("aether.io").is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn trim_pod(pod: &mut Pod) {
    trim_meta(&mut pod.metadata);
    if let Some(spec) = pod.spec.take() {
        let volumes = spec.volumes.map(|mut volumes| {
            volumes.retain(|v| v.csi.as_ref().is_some_and(|csi| csi.driver == CSI_DRIVER));
            volumes
        });
        pod.spec = Some(PodSpec {
            node_name: spec.node_name,
            // The older name of the field; the API server fills both.
            service_account_name: spec.service_account_name.or(spec.service_account),
            host_network: spec.host_network,
            volumes: volumes.filter(|volumes| !volumes.is_empty()),
            ..PodSpec::default()
        });
    }
    if let Some(status) = pod.status.take() {
        let conditions = status.conditions.map(|mut conditions| {
            conditions.retain(|condition| condition.type_ == "Ready");
            for condition in &mut conditions {
                // The times of probes and transitions change without any change of readiness.
                condition.last_probe_time = None;
                condition.last_transition_time = None;
                condition.message = None;
                condition.reason = None;
                condition.observed_generation = None;
            }
            conditions
        });
        pod.status = Some(PodStatus {
            phase: status.phase,
            pod_ip: status.pod_ip,
            pod_ips: status.pod_ips,
            // A pod that was never probed has none at all.
            conditions: conditions.filter(|conditions| !conditions.is_empty()),
            ..PodStatus::default()
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn trimmed_pod(value: Value) -> Value {
        let mut object = Object::Pod(Box::new(serde_json::from_value(value).unwrap()));
        trim(&mut object);
        let Object::Pod(pod) = object else { panic!("the kind changed") };
        serde_json::to_value(pod).unwrap()
    }

    #[test]
    fn a_pod_keeps_what_the_mesh_reads() {
        let kept = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-0", "namespace": "shop", "uid": "u",
                "labels": {"app": "web", "aether.io/managed": "true"},
                "annotations": {"aether.io/identity-gate": "false", "endpoint.aether.io/port": "9"},
                "creationTimestamp": "2026-11-30T11:45:29Z",
                "deletionTimestamp": "2026-11-30T11:46:29Z",
            },
            "spec": {
                "containers": [], "nodeName": "n1", "serviceAccountName": "web", "hostNetwork": true,
                "volumes": [{"name": "s", "csi": {"driver": "csi.aether.io"}}],
            },
            "status": {
                "phase": "Running", "podIP": "10.0.0.1",
                "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        assert_eq!(trimmed_pod(kept.clone()), kept);
        let mut whole = kept.clone();
        whole["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
            "{}".into();
        whole["metadata"]["annotations"]["notaether.io/port"] = "1".into();
        whole["metadata"]["annotations"]["aether.io"] = "no prefix".into();
        whole["metadata"]["resourceVersion"] = "17".into();
        whole["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
        whole["spec"]["containers"] = json!([{"name": "app", "image": "x"}]);
        whole["spec"]["volumes"] = json!([
            {"name": "t", "emptyDir": {}},
            {"name": "s", "csi": {"driver": "csi.aether.io"}},
        ]);
        whole["status"]["conditions"] = json!([
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T11:45:29Z"},
        ]);
        whole["status"]["startTime"] = "2026-11-30T11:45:29Z".into();
        assert_eq!(trimmed_pod(whole), kept);
    }

    #[test]
    fn a_service_keeps_whether_we_wrote_it_and_a_pod_does_not() {
        let entry = |manager: &str| json!({"manager": manager, "operation": "Update", "time": "2026-11-30T11:45:29Z", "fieldsV1": {"f:spec": {}}});
        let table = [
            (json!(["kubectl", "aether", "aether"]), json!([{"manager": "aether"}])),
            (json!(["kubectl", "aether-2"]), Value::Null),
            (json!([]), Value::Null),
        ];
        for (managers, kept) in table {
            let managers = managers.as_array().unwrap().iter();
            let entries: Vec<_> = managers.map(|m| entry(m.as_str().unwrap())).collect();
            let service = json!({"metadata": {"name": "a", "managedFields": entries}});
            let mut object = Object::Service(Box::new(serde_json::from_value(service).unwrap()));
            trim(&mut object);
            let Object::Service(service) = object else { panic!("the kind changed") };
            let service = serde_json::to_value(service).unwrap();
            assert_eq!(service["metadata"]["managedFields"], kept);
        }
    }

    #[test]
    fn conditions_that_do_not_matter_are_none() {
        let initialized = json!([{"type": "Initialized", "status": "True"}]);
        let pod = |status: Value| trimmed_pod(json!({"metadata": {"name": "a"}, "status": status}));
        let without = pod(json!({"phase": "Pending"}));
        assert_eq!(pod(json!({"phase": "Pending", "conditions": initialized})), without);
    }

    #[test]
    fn the_older_name_of_the_service_account_counts() {
        let pod =
            json!({"metadata": {"name": "a"}, "spec": {"serviceAccount": "web", "containers": []}});
        assert_eq!(trimmed_pod(pod)["spec"]["serviceAccountName"], "web");
    }
}
