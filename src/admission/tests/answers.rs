//! The answers as the API server reads them.

use serde_json::{Value, json};

use super::reviews::{request, review};
use super::*;
use crate::admission::Review;
use crate::admission::answer::Answer;

fn answer(pod: &Value, settings: &Settings) -> Value {
    let review = Review::read(&review(&request(pod))).unwrap();
    let (_, answer) = Answer::to(&review, Entry::Pod, settings).unwrap();
    serde_json::to_value(&answer).unwrap()
}

/// The operations that an answer carries, as the API server finds them.
fn patch_of(answer: &Value) -> Vec<Value> {
    let encoded = answer["response"]["patch"].clone();
    let bytes: k8s_openapi::ByteString = serde_json::from_value(encoded).unwrap();
    serde_json::from_slice(&bytes.0).unwrap()
}

#[test]
fn an_answer_echoes_the_uid_and_carries_the_patch() {
    let answer = answer(&pod(), &without_gate());
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    assert!(answer["response"]["patch"].is_string(), "base64, as everyone reads it");
    assert_eq!(Value::from(patch_of(&answer)), operations(&pod(), &without_gate()));
}

/// Without operations there is neither patch nor type: one without the other is refused.
#[test]
fn no_operation_is_no_patch() {
    let done = admitted(&pod(), &settings());
    let opted_out = pod_with(json!({ "metadata": { "labels": { "aether.io/managed": "no" } } }));
    for pod in [done, opted_out] {
        let answer = answer(&pod, &settings());
        let response = answer["response"].as_object().unwrap();
        assert_eq!(response["allowed"], true);
        assert!(!response.contains_key("patch") && !response.contains_key("patchType"), "{answer}");
    }
}

#[test]
fn a_denial_is_forbidden_with_the_whole_message() {
    let pod = pod_with(
        json!({ "spec": { "volumes": [{ "name": "s", "csi": { "driver": "csi.aether.io" } }] } }),
    );
    let answer = answer(&pod, &settings());
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 403);
    assert_eq!(answer["response"]["status"]["reason"], "Forbidden");
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.contains("Pod shop/web") && message.contains("fsGroup"), "{message}");
    assert_eq!(answer["response"]["auditAnnotations"], json!({ "denied": "no_fs_group" }));
    assert_eq!(answer["response"].get("patch"), None);
}

#[test]
fn who_gets_less_is_told_and_nobody_else() {
    let foreign = json!({ "name": "aether-identity-ready", "image": "x" });
    let annotated =
        json!({ "metadata": { "annotations": { "aether.io/identity-gate": "false" } } });
    let windows = json!({ "spec": { "os": { "name": "windows" } } });
    let long = json!({ "spec": { "volumes": [{ "name": "aether-identity-gate-spiffe", "emptyDir": {} }] } });
    let table: [(Value, &[&str]); 9] = [
        (json!({}), &[]),
        (annotated, &[]),
        (
            json!({ "spec": { "dnsConfig": { "options": [{ "name": "ndots", "value": "1" }] } } }),
            &[],
        ),
        (json!({ "spec": { "dnsPolicy": "Default" } }), &["dnsPolicy Default"]),
        (json!({ "spec": { "dnsPolicy": "None" } }), &["dnsPolicy None"]),
        (json!({ "spec": { "hostNetwork": true } }), &["identity gate", "resolver options"]),
        (windows, &["Windows"]),
        (json!({ "spec": { "initContainers": [foreign] } }), &["container aether-identity-ready"]),
        (long, &["volume aether-identity-gate-spiffe"]),
    ];
    for (change, expected) in table {
        let answer = answer(&pod_with(change.clone()), &settings());
        let warnings = answer["response"]["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.len(), expected.len(), "{change}: {warnings:?}");
        for (warning, part) in warnings.iter().zip(expected) {
            let warning = warning.as_str().unwrap();
            assert!(warning.starts_with("aether: ") && warning.contains(part), "{warning}");
            // The API server cuts longer ones.
            assert!(warning.len() <= 256, "{} bytes: {warning}", warning.len());
        }
    }
    // Where there is no gate, nobody misses it.
    let host = pod_with(json!({ "spec": { "hostNetwork": true } }));
    let answer = answer(&host, &Settings { pod_ndots: false, ..without_gate() });
    assert_eq!(answer["response"].get("warnings"), None);
}

/// The API server calls again for one pod, and logs a mistake where an audit annotation changes.
#[test]
fn the_audit_annotations_of_both_reviews_of_a_pod_are_equal() {
    let changes = [
        json!({}),
        json!({ "spec": { "hostNetwork": true } }),
        json!({ "spec": { "dnsPolicy": "Default" } }),
        json!({ "metadata": { "annotations": { "aether.io/identity-gate": "false" } } }),
        json!({ "spec": { "initContainers": [{ "name": "a" }] } }),
    ];
    for change in changes {
        let pod = pod_with(change);
        let first = answer(&pod, &settings());
        let second = answer(&admitted(&pod, &settings()), &settings());
        let of = |answer: &Value| answer["response"]["auditAnnotations"].clone();
        assert_eq!(of(&first), of(&second));
        let annotations = of(&first);
        for (key, value) in annotations.as_object().unwrap() {
            // The webhook's name is put before each, with a slash.
            assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{key}");
            assert!(value.as_str().unwrap().len() < 64, "{value}");
        }
        assert_eq!(annotations["managed-by"], "pod");
    }
}

#[test]
fn a_dry_run_is_answered_like_any_other() {
    let mut wet = request(&pod());
    wet["dryRun"] = json!(false);
    let wet = Review::read(&review(&wet)).unwrap();
    let (_, wet) = Answer::to(&wet, Entry::Pod, &settings()).unwrap();
    assert_eq!(serde_json::to_value(&wet).unwrap(), answer(&pod(), &settings()));
}
