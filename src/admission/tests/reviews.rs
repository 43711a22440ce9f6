//! Reading reviews: whatever is wrong, the uid is found where there is one.

use serde_json::{Value, json};

use crate::admission::{Review, ReviewError};

pub(super) fn review(request: &Value) -> Vec<u8> {
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    serde_json::to_vec(&review).unwrap()
}

pub(super) fn request(object: &Value) -> Value {
    json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" },
        "requestKind": { "group": "", "version": "v1", "kind": "Pod" },
        "requestResource": { "group": "", "version": "v1", "resource": "pods" },
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": { "username": "admin", "groups": ["system:authenticated"] },
        "object": object,
        "oldObject": null,
        "dryRun": true,
        "options": { "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" },
    })
}

#[test]
fn what_a_decision_needs_is_read_and_the_pod_stays_as_it_came() {
    let pod =
        json!({ "metadata": { "labels": null }, "spec": { "future": [1.50, { "a/b~c": null }] } });
    let read = Review::read(&review(&request(&pod))).unwrap();
    assert_eq!(read.uid, "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!((&*read.kind, &*read.operation, &*read.subresource), ("/v1 Pod", "CREATE", ""));
    assert_eq!((&*read.namespace, read.dry_run), ("shop", true));
    assert_eq!(read.object, Some(pod));
    // Fields that may be left out, and that are null in a DELETE.
    let least = json!({ "uid": "u", "operation": "DELETE", "object": null });
    let read = Review::read(&review(&least)).unwrap();
    assert_eq!((&*read.kind, &*read.namespace, read.object), ("/ ", "", None));
}

#[test]
fn what_cannot_be_answered_says_why_and_whose_it_is() {
    let with = |key: &str, value: Value| {
        let mut request = request(&json!({}));
        request[key] = value;
        review(&request)
    };
    let envelope = |version: &str, kind: &str, request: Value| {
        serde_json::to_vec(&json!({ "apiVersion": version, "kind": kind, "request": request }))
            .unwrap()
    };
    let uid = json!({ "uid": "u" });
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep =
        String::from_utf8(review(&request(&json!("DEEP")))).unwrap().replace("\"DEEP\"", &deep);
    // The body, the uid that is known, and what the message says.
    let table: Vec<(Vec<u8>, Option<&str>, &str)> = vec![
        (vec![], None, "empty"),
        (b" \n".to_vec(), None, "empty"),
        (b"{".to_vec(), None, "no AdmissionReview"),
        (b"null".to_vec(), None, "no AdmissionReview"),
        (b"[]".to_vec(), None, "no AdmissionReview"),
        (b"\xff\xfe".to_vec(), None, "no AdmissionReview"),
        (b"{} trailing".to_vec(), None, "no AdmissionReview"),
        (b"{}".to_vec(), None, "nothing of nothing"),
        (
            envelope("admission.k8s.io/v1beta1", "AdmissionReview", uid.clone()),
            Some("u"),
            "admissionReviewVersions: [v1]",
        ),
        (envelope("v1", "Pod", uid.clone()), Some("u"), "\"Pod\" of \"v1\""),
        (envelope("admission.k8s.io/v1", "AdmissionReview", Value::Null), None, "no request"),
        (envelope("admission.k8s.io/v1", "AdmissionReview", json!({})), None, "no uid"),
        (envelope("admission.k8s.io/v1", "AdmissionReview", json!({ "uid": "" })), None, "no uid"),
        (envelope("admission.k8s.io/v1", "AdmissionReview", json!({ "uid": 7 })), None, "no uid"),
        (
            with("operation", json!(7)),
            Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
            "request.operation: it is \"7\"",
        ),
        (
            with("namespace", json!([])),
            Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
            "request.namespace",
        ),
        (
            with("subResource", json!({})),
            Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
            "request.subResource",
        ),
        (
            with("kind", json!({ "kind": 1 })),
            Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
            "request.kind",
        ),
        // Deeper than any pod, it would take the stack with it.
        (
            deep.into_bytes(),
            Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
            "request.object: recursion limit",
        ),
    ];
    for (body, uid, part) in table {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let unreadable = Review::read(&body).expect_err(&shown);
        assert_eq!(unreadable.uid.as_deref(), uid, "{shown}");
        assert!(unreadable.to_string().contains(part), "{shown}: {unreadable}");
    }
    assert_eq!(Review::read(b"").unwrap_err().error, ReviewError::Empty);
}
