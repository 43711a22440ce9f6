//! Pods and namespaces of all kinds: each is matched by exactly the right entry and never by both, before our label is
//! on it and after.

use serde_json::{Value, json};

use crate::audit::ours;
use crate::stage::{Stage, inits, pod, pod_with};

/// Namespaces by their name and label.
const NAMESPACES: [(&str, Option<&str>); 7] = [
    ("plain", None),
    ("managed", Some("true")),
    ("unmanaged", Some("false")),
    ("odd", Some("True")),
    ("empty", Some("")),
    ("spire-system", Some("true")),
    ("aether-system", Some("true")),
];

/// Labels of pods; `None`: there is no map of labels at all.
const LABELS: [Option<&str>; 6] = [
    None,
    Some(r#"{"app": "web"}"#),
    Some(r#"{"aether.io/managed": "true", "app": "web"}"#),
    Some(r#"{"aether.io/managed": "false"}"#),
    Some(r#"{"aether.io/managed": ""}"#),
    Some(r#"{"aether.io/managed": "TRUE"}"#),
];

/// What the contract says of a pod: the entry that brings it, if any.
fn expected(namespace: (&str, Option<&str>), labels: &Value) -> Option<&'static str> {
    let never = ["kube-system", "spire-system", "aether-system"].contains(&namespace.0);
    let label = labels.get("aether.io/managed").and_then(Value::as_str);
    match (never, namespace.1 == Some("true"), label) {
        (true, ..) => None,
        (_, true, None | Some("true")) => Some("namespaces.aether.io"),
        (_, false, Some("true")) => Some("pods.aether.io"),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_pod_is_brought_by_the_right_entry_alone() {
    let stage = Stage::start(&[]).await;
    let mut seen = 0;
    let system = ("kube-system", None);
    stage.cluster.wait_for_namespace("kube-system").await.unwrap();
    for namespace in NAMESPACES.into_iter().chain([system]) {
        if namespace != system {
            let labels =
                namespace.1.map_or(json!({}), |label| json!({ "aether.io/managed": label }));
            stage.namespace(namespace.0, labels).await;
        }
        for (index, labels) in LABELS.into_iter().enumerate() {
            let labels: Value =
                labels.map_or(Value::Null, |labels| serde_json::from_str(labels).unwrap());
            let name = format!("pod-{index}");
            let mut asked = pod(&name, labels.clone());
            if labels.is_null() {
                asked["metadata"].as_object_mut().unwrap().remove("labels");
            }
            let stored = stage.create(namespace.0, &asked).await.unwrap();
            let calls = ours(&stage.audit.created(namespace.0, &name).await);
            let what = format!("{namespace:?} {labels}: {calls:?}");
            if let Some(entry) = expected(namespace, &labels) {
                // Twice, since the token is mounted into our container; the second time nothing is done.
                let entries: Vec<_> =
                    calls.iter().map(|call| (&*call.entry, call.round, call.mutated)).collect();
                assert_eq!(entries, [(entry, 0, true), (entry, 1, false)], "{what}");
                assert_eq!(stored["metadata"]["labels"]["aether.io/managed"], "true", "{what}");
                assert_eq!(inits(&stored), ["aether-identity-ready"], "{what}");
                let options = stored["spec"]["dnsConfig"]["options"].as_array().unwrap();
                assert_eq!(options.len(), 3, "{what}");
            } else {
                assert!(calls.is_empty(), "{what}");
                let kept = stored["metadata"].get("labels").unwrap_or(&Value::Null);
                assert_eq!(kept, &labels, "{what}");
                assert_eq!(stored["spec"].get("initContainers"), None, "{what}");
                assert_eq!(stored["spec"].get("dnsConfig"), None, "{what}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen}");
}

/// What else a pod can be. Of each: whether it gets the gate, and how often the webhook is asked.
#[tokio::test(flavor = "multi_thread")]
async fn the_shape_of_a_pod_says_what_it_gets() {
    let stage = Stage::start(&[]).await;
    stage.namespace("managed", json!({ "aether.io/managed": "true" })).await;
    let host = json!({ "hostNetwork": true, "containers": [{ "name": "web", "image": "w" }] });
    let taken =
        json!({ "initContainers": [{ "name": "aether-identity-ready", "image": "busybox" }] });
    let sidecar =
        json!({ "initContainers": [{ "name": "proxy", "image": "p", "restartPolicy": "Always" }] });
    let table: [(&str, Value, bool, usize); 7] = [
        ("plain", json!({}), true, 2),
        ("no-token", json!({ "automountServiceAccountToken": false }), true, 1),
        ("host", host, false, 1),
        ("windows", json!({ "os": { "name": "windows" } }), false, 1),
        ("windows-node", json!({ "nodeSelector": { "kubernetes.io/os": "windows" } }), false, 1),
        ("taken", taken, false, 1),
        ("sidecar", sidecar, true, 2),
    ];
    for (name, spec, gate, reviews) in table {
        let stored = stage.create("managed", &pod_with(name, json!({}), &spec)).await.unwrap();
        let event = stage.audit.created("managed", name).await;
        let calls = ours(&event);
        assert_eq!(calls.len(), reviews, "{name}: {calls:?}");
        let first = inits(&stored).first().copied();
        let has_gate = first == Some("aether-identity-ready")
            && stored["spec"]["initContainers"][0]["image"] == crate::stage::IMAGE;
        assert_eq!(has_gate, gate, "{name}: {stored}");
        let said = &event["annotations"]["namespaces.aether.io/identity-gate"];
        assert_eq!(said == "present", gate, "{name}: {said}");
        assert_eq!(event["annotations"]["namespaces.aether.io/managed-by"], "namespace", "{name}");
    }
    // The annotation, which opts out of the gate alone.
    let mut opted_out = pod("opted-out", json!({}));
    opted_out["metadata"]["annotations"] = json!({ "aether.io/identity-gate": "false" });
    let stored = stage.create("managed", &opted_out).await.unwrap();
    assert!(inits(&stored).is_empty());
    assert_eq!(stored["metadata"]["labels"]["aether.io/managed"], "true");
    // The API server has nothing to complain of.
    let log = stage.log();
    assert!(!log.contains("WARN"), "{log}");
}

/// A label that is null is an empty one to the API server, so the pod has opted out: `aether inject` reads it so too.
#[tokio::test(flavor = "multi_thread")]
async fn a_null_label_is_an_empty_one() {
    let stage = Stage::start(&[]).await;
    stage.namespace("managed", json!({ "aether.io/managed": "true" })).await;
    let asked = pod("null", json!({ "aether.io/managed": null, "app": "web" }));
    let stored = stage.create("managed", &asked).await.unwrap();
    assert_eq!(stored["metadata"]["labels"], json!({ "aether.io/managed": "", "app": "web" }));
    assert!(ours(&stage.audit.created("managed", "null").await).is_empty());
}
