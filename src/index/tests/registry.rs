//! The registry that the generator decides by.

use serde_json::{Value, json};

use super::{merge, put, service};
use crate::index::{Change, Id, Index, ObjectKind, Settings};
use crate::model::{Accounts, MeshNames, Said};

fn pod(name: &str, account: &str, created: u8, more: Value) -> Value {
    let mut pod = json!({
        "kind": "Pod",
        "metadata": {
            "namespace": "shop", "name": name,
            "labels": { "aether.io/managed": "true" },
            "creationTimestamp": format!("2026-11-30T00:00:{created:02}Z"),
        },
        "spec": { "serviceAccountName": account, "containers": [] },
        "status": { "phase": "Running" },
    });
    merge(&mut pod, more);
    pod
}

fn index() -> Index {
    Index::new(Settings::new(MeshNames::default(), ["spire-system"], Vec::new()))
}

fn of(objects: &[Value]) -> Accounts {
    let mut index = index();
    objects.iter().for_each(|object| index.apply(put(object)));
    let registry = index.registry().unwrap();
    registry.namespaces.get("shop").map(|accounts| Accounts::clone(accounts)).unwrap_or_default()
}

#[test]
fn pods_that_run_and_pods_that_may() {
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    let accounts = of(&[
        pod("a", "runs", 1, json!({})),
        pod("b", "starts", 1, phase("Pending")),
        pod("c", "unknown", 1, phase("Unknown")),
        pod("d", "over", 1, phase("Succeeded")),
        pod("e", "failed", 1, phase("Failed")),
        pod("f", "host", 1, json!({ "spec": { "hostNetwork": true } })),
        pod("g", "out", 1, json!({ "metadata": { "labels": { "aether.io/managed": "false" } } })),
        pod("h", "default", 1, json!({})),
        pod(
            "i",
            "leaves",
            1,
            json!({ "metadata": { "deletionTimestamp": "2026-11-30T00:00:00Z" } }),
        ),
    ]);
    assert_eq!(accounts.running.keys().map(|name| &**name).collect::<Vec<_>>(), ["leaves", "runs"]);
    let present: Vec<_> = accounts.present.iter().map(|name| &**name).collect();
    assert_eq!(present, ["leaves", "runs", "starts", "unknown"]);
}

#[test]
fn the_oldest_pod_speaks_for_all() {
    let says =
        |port: &str| json!({ "metadata": { "annotations": { "endpoint.aether.io/port": port } } });
    let accounts = of(&[
        pod("a", "web", 9, says("9002")),
        pod("b", "web", 2, says("9000")),
        pod("c", "web", 5, says("9001")),
        pod("d", "web", 3, says("9000")),
        pod("e", "web", 1, json!({ "status": { "phase": "Pending" } })),
    ]);
    let said =
        Said { value: Some(9000), by: "b".into(), otherwise: Some(("c".into(), Some(9001))) };
    assert_eq!(accounts.running["web"].port, said);
    assert_eq!(accounts.running["web"].protocol.otherwise, None);
    // A word that is too long to be one is TCP.
    let long = "x".repeat(64);
    let annotated =
        json!({ "metadata": { "annotations": { "endpoint.aether.io/protocol": long } } });
    let accounts = of(&[pod("a", "web", 1, annotated)]);
    assert_eq!(accounts.running["web"].protocol.value.as_deref(), Some("tcp"));
}

#[test]
fn claims_are_those_of_users_services_that_can_be_used() {
    let ours = json!({ "metadata": {
        "annotations": { "aether.io/generated-for": "shop/ours" },
        "managedFields": [{ "manager": "aether" }],
    } });
    let copied =
        json!({ "metadata": { "annotations": { "aether.io/generated-for": "shop/copied" } } });
    let named = json!({ "metadata": { "annotations": { "aether.io/service": "other" } } });
    let wrong = json!({ "metadata": { "annotations": { "aether.io/service": "NO" } } });
    let accounts = of(&[
        service("shop", "ours", ours),
        service("shop", "copied", copied),
        service("shop", "named", named),
        service("shop", "wrong", wrong),
    ]);
    let claimed: Vec<_> = accounts.claimed.iter().map(|(name, by)| (&**name, &**by)).collect();
    assert_eq!(claimed, [("copied", "copied"), ("other", "named")]);
    assert_eq!(accounts.generated.keys().map(|name| &**name).collect::<Vec<_>>(), ["ours"]);
}

#[test]
fn one_that_drifted_beyond_reading_is_still_ours() {
    let drift = json!({
        "metadata": {
            "annotations": { "aether.io/generated-for": "shop/ours", "aether.io/port": "nonsense" },
            "managedFields": [{ "manager": "aether" }],
        },
        "spec": { "type": "ExternalName" },
    });
    let accounts = of(&[service("shop", "ours", drift)]);
    assert!(accounts.claimed.is_empty() && !accounts.generated["ours"].plain);
}

#[test]
fn it_is_made_anew_where_something_changed_and_nowhere_else() {
    let mut index = index();
    assert!(index.registry().unwrap().namespaces.is_empty(), "the first one, though empty");
    assert!(index.registry().is_none());
    index.apply(put(&pod("a", "web", 1, json!({}))));
    let mut other = pod("a", "web", 1, json!({}));
    other["metadata"]["namespace"] = "pay".into();
    index.apply(put(&other));
    let mut excluded = other.clone();
    excluded["metadata"]["namespace"] = "spire-system".into();
    index.apply(put(&excluded));
    let first = index.registry().unwrap();
    assert_eq!(first.namespaces.keys().map(|name| &**name).collect::<Vec<_>>(), ["pay", "shop"]);
    // Equal content is no news.
    index.apply(put(&other));
    index.apply(put(&json!({ "kind": "Namespace", "metadata": { "name": "shop" } })));
    assert!(index.registry().is_none());
    index.apply(put(&json!({
        "kind": "Namespace",
        "metadata": { "name": "shop", "deletionTimestamp": "2026-11-30T00:00:00Z" },
    })));
    let second = index.registry().unwrap();
    assert!(second.namespaces["shop"].closing);
    assert!(std::sync::Arc::ptr_eq(&first.namespaces["pay"], &second.namespaces["pay"]));
    index.apply(Change::Remove(Id {
        kind: ObjectKind::Pod,
        namespace: "pay".into(),
        name: "a".into(),
    }));
    assert!(!index.registry().unwrap().namespaces.contains_key("pay"));
}

#[test]
fn every_difference_that_matters_makes_it_anew() {
    let annotated =
        |key: &str, value: &str| json!({ "metadata": { "annotations": { key: value } } });
    for more in [
        json!({ "status": { "phase": "Pending" } }),
        json!({ "status": { "phase": "Succeeded" } }),
        json!({ "spec": { "serviceAccountName": "other" } }),
        json!({ "spec": { "hostNetwork": true } }),
        json!({ "metadata": { "labels": { "aether.io/managed": "false" } } }),
        annotated("endpoint.aether.io/port", "9000"),
        annotated("endpoint.aether.io/protocol", "grpc"),
    ] {
        let mut index = index();
        index.apply(put(&pod("a", "web", 1, json!({}))));
        index.registry().unwrap();
        index.apply(put(&pod("a", "web", 1, more.clone())));
        assert!(index.registry().is_some(), "{more}");
    }
    let mut index = index();
    index.apply(put(&pod("a", "web", 1, json!({}))));
    index.apply(put(&pod("b", "web", 2, json!({}))));
    index.registry().unwrap();
    // Another pod is the oldest.
    index.apply(put(&pod("a", "web", 3, json!({}))));
    assert!(index.registry().is_some());
    let ready = json!({ "status": { "podIP": "10.244.0.1", "conditions": [{ "type": "Ready", "status": "True" }] } });
    index.apply(put(&pod("a", "web", 3, ready)));
    assert!(index.registry().is_none());
}
