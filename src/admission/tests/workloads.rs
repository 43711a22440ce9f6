//! Pods inside workloads.

use serde_json::{Value, json};

use super::*;
use crate::admission::decide::Untouched;
use crate::admission::workload::{Kind, Namespace, Outcome, inject, managed_namespace};

fn outcome(object: &Value, managed: bool) -> Outcome {
    let kind = Kind::of(object, Kind { api_version: "", kind: "" });
    let namespace = Namespace { name: "shop".to_owned(), managed };
    inject(object, kind, &namespace, &settings()).unwrap()
}

/// A workload whose pod stands at this path.
fn workload(api_version: &str, kind: &str, path: &str) -> Value {
    let mut pod = pod();
    pod.as_object_mut().unwrap().retain(|key, _| key == "metadata" || key == "spec");
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "web" } });
    let mut at = &mut object;
    for key in path.split('/').filter(|key| !key.is_empty()) {
        at = &mut at[key];
    }
    if path.is_empty() {
        json_patch::merge(at, &pod);
    } else {
        *at = pod;
    }
    object
}

const WORKLOADS: [(&str, &str, &str); 9] = [
    ("v1", "Pod", ""),
    ("v1", "ReplicationController", "spec/template"),
    ("v1", "PodTemplate", "template"),
    ("apps/v1", "Deployment", "spec/template"),
    ("apps/v1", "StatefulSet", "spec/template"),
    ("apps/v1", "DaemonSet", "spec/template"),
    ("apps/v1", "ReplicaSet", "spec/template"),
    ("batch/v1", "Job", "spec/template"),
    ("batch/v1", "CronJob", "spec/jobTemplate/spec/template"),
];

#[test]
fn every_workload_gets_what_its_pods_would_get() {
    for (api_version, kind, path) in WORKLOADS {
        let object = workload(api_version, kind, path);
        let Outcome::Managed { patch, .. } = outcome(&object, false) else { panic!("{kind}") };
        let mut after = object.clone();
        json_patch::patch(&mut after, &patch.0).unwrap();
        let pointer = if path.is_empty() { String::new() } else { format!("/{path}") };
        let template = after.pointer(&pointer).unwrap();
        let alone = admitted(object.pointer(&pointer).unwrap(), &settings());
        assert_eq!(*template, alone, "{kind}");
        // And nothing beside it.
        let mut rest = after.clone();
        *rest.pointer_mut(&pointer).unwrap() = object.pointer(&pointer).unwrap().clone();
        assert_eq!(rest, object, "{kind}");
        let Outcome::Managed { patch, .. } = outcome(&after, false) else { panic!("{kind}") };
        assert!(patch.0.is_empty(), "{kind}: {patch:?}");
    }
}

#[test]
fn a_gate_behind_another_is_moved_inside_the_template() {
    let mut object = workload("apps/v1", "Deployment", "spec/template");
    let Outcome::Managed { patch, .. } = outcome(&object, false) else { panic!() };
    json_patch::patch(&mut object, &patch.0).unwrap();
    let inits = object.pointer_mut("/spec/template/spec/initContainers").unwrap();
    inits.as_array_mut().unwrap().insert(0, json!({ "name": "other" }));
    let Outcome::Managed { patch, .. } = outcome(&object, false) else { panic!() };
    let list = "/spec/template/spec/initContainers";
    assert_eq!(
        serde_json::to_value(&patch).unwrap(),
        json!([
            { "op": "test", "path": format!("{list}/1/name"), "value": "aether-identity-ready" },
            { "op": "move", "from": format!("{list}/1"), "path": format!("{list}/0") },
        ])
    );
}

#[test]
fn what_is_no_workload_of_kubernetes_passes() {
    for (api_version, kind) in [
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("v1", "Namespace"),
        ("serving.knative.dev/v1", "Service"),
        ("example.com/v1", "Deployment"),
        ("v1", "Deployment"),
        ("apps/v1", "Pod"),
        ("", ""),
    ] {
        let object = workload(api_version, kind, "spec/template");
        assert_eq!(outcome(&object, true), Outcome::NoWorkload, "{api_version} {kind}");
    }
    for spec in [Value::Null, json!({}), json!({ "template": null })] {
        let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec });
        assert_eq!(outcome(&object, true), Outcome::NoWorkload, "{object}");
    }
}

#[test]
fn the_namespace_brings_in_what_has_no_label_of_its_own() {
    let mut object = workload("apps/v1", "Deployment", "spec/template");
    object["spec"]["template"]["metadata"]["labels"] = json!({ "app": "web" });
    assert_eq!(outcome(&object, false), Outcome::Untouched(Untouched::NotLabelled));
    assert!(matches!(outcome(&object, true), Outcome::Managed { .. }));
    // The label of the Deployment itself is not its pods'.
    object["metadata"]["labels"] = json!({ "aether.io/managed": "true" });
    assert_eq!(outcome(&object, false), Outcome::Untouched(Untouched::NotLabelled));
}

#[test]
fn a_denial_names_the_workload() {
    let mut object = workload("batch/v1", "CronJob", "spec/jobTemplate/spec/template");
    object.pointer_mut("/spec/jobTemplate/spec/template/spec").unwrap()["volumes"] =
        json!([{ "name": "s", "csi": { "driver": "csi.aether.io" } }]);
    let Outcome::Denied(denial) = outcome(&object, false) else { panic!() };
    assert!(denial.to_string().starts_with("CronJob shop/web cannot"), "{denial}");
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let mut object = workload("v1", "Pod", "");
    object["metadata"]["annotations"] = json!({ "aether.io/identity-gate": false });
    let kind = Kind { api_version: "v1", kind: "Pod" };
    let namespace = Namespace { name: "shop".to_owned(), managed: true };
    let error = inject(&object, kind, &namespace, &settings()).unwrap_err().to_string();
    for part in ["metadata.annotations", "aether.io/identity-gate: false", "in quotes"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn namespaces_are_told_from_all_else() {
    let kind = Kind { api_version: "v1", kind: "Namespace" };
    let namespace = |labels: Value| json!({ "metadata": { "name": "shop", "labels": labels } });
    let managed = namespace(json!({ "aether.io/managed": "true" }));
    assert_eq!(managed_namespace(&managed, kind), Some(("shop", true)));
    assert_eq!(
        managed_namespace(&namespace(json!({ "aether.io/managed": "yes" })), kind),
        Some(("shop", false))
    );
    assert_eq!(managed_namespace(&namespace(Value::Null), kind), Some(("shop", false)));
    let pod = Kind { api_version: "v1", kind: "Pod" };
    assert_eq!(managed_namespace(&managed, pod), None);
}
