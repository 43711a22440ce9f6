//! The projection depends on the objects alone: not on their order, nor on what was there before.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Index, Settings, merge, put, service};
use crate::index::changed::Changed;
use crate::index::project::Memo;
use crate::index::{Change, Id};
use crate::model::ServiceKey;

/// Objects that conflict in many ways: few names, few addresses, few times.
pub fn object() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    // The last one is never touched.
    let namespace = prop::sample::select(vec!["x", "x", "y", "y", "kube-system"]);
    let claim = prop::sample::select(vec!["", "a", "b", "UPPER"]);
    (name, namespace, claim, 0..4u8, 0..4u8, any::<bool>()).prop_map(
        |(name, namespace, claim, ip, at, slice)| {
            // No endpoint has this one: something is found, which concerns nobody without the Service.
            let address = if ip == 3 { "127.0.0.1".to_owned() } else { format!("10.0.0.{ip}") };
            if slice {
                return json!({
                    "kind": "EndpointSlice", "addressType": "IPv4",
                    "metadata": { "namespace": namespace, "name": format!("{name}-{at}"), "labels": { "kubernetes.io/service-name": name } },
                    "ports": [{ "name": "web", "port": 8080 }],
                    "endpoints": [{
                        "addresses": [address], "conditions": { "ready": at > 0 },
                        "nodeName": "n1", "targetRef": { "kind": "Pod", "name": "p1" }
                    }]
                });
            }
            let (first, second) = (format!("10.96.0.{ip}"), format!("fd00::{at}"));
            let mut base = service(namespace, name, json!({
                "metadata": {
                    "creationTimestamp": format!("2026-01-0{}T00:00:00Z", at + 1),
                    "labels": { "aether.io/mesh-service": (at != 3).to_string() }
                },
                "spec": { "clusterIP": first, "clusterIPs": [first, second] }
            }));
            if ip == 3 {
                merge(&mut base, json!({ "spec": { "clusterIP": "None", "clusterIPs": ["None"] } }));
            }
            if !claim.is_empty() {
                merge(&mut base, super::annotated("aether.io/service", claim));
            }
            base
        },
    )
}

fn id(change: &Change) -> Id {
    match change {
        Change::Put { id, .. } | Change::Remove(id) => id.clone(),
    }
}

/// Objects that endpoints, weights, localities and warnings depend on.
pub fn surroundings() -> impl Strategy<Value = Value> {
    let node = (prop::sample::select(vec!["n1", "n2"]), 0..3u8).prop_map(|(name, zone)| {
        let labels = json!({ "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": format!("z{zone}") });
        json!({ "kind": "Node", "metadata": { "name": name, "labels": labels } })
    });
    let namespace = (prop::sample::select(vec!["x", "y"]), any::<bool>()).prop_map(|(name, managed)| {
        json!({ "kind": "Namespace", "metadata": { "name": name, "labels": { "aether.io/managed": managed.to_string() } } })
    });
    let pod = (
        prop::sample::select(vec!["x", "y"]),
        prop::sample::select(vec!["p1", "p2"]),
        prop::sample::select(vec!["a", "b"]),
        prop::sample::select(vec!["true", "false", ""]),
        0..3u8,
        prop::sample::select(vec!["a", "b, y/a", "", "x/c,B", "B"]),
    );
    let pod = pod.prop_map(|(namespace, name, account, managed, number, upstreams)| {
        let mut labels = json!({ "aether.io/managed": managed });
        if managed.is_empty() {
            labels = json!({});
        }
        json!({
            "kind": "Pod",
            "metadata": {
                "namespace": namespace, "name": name, "labels": labels, "uid": format!("u{number}"),
                "annotations": {
                    "endpoint.aether.io/weight": number.to_string(),
                    "config.aether.io/upstreams": upstreams
                }
            },
            "spec": { "nodeName": format!("n{number}"), "serviceAccountName": account, "containers": [] },
            "status": { "phase": "Running", "podIP": format!("10.1.0.{number}") }
        })
    });
    let generated = (prop::sample::select(vec!["x", "y"]), 0..3u8).prop_map(|(namespace, ip)| {
        let ip = format!("10.96.0.{ip}");
        let mut base = service(
            namespace,
            "b",
            json!({ "spec": { "clusterIP": ip, "clusterIPs": [ip], "selector": null } }),
        );
        merge(&mut base, super::annotated("aether.io/generated-for", &format!("{namespace}/b")));
        base
    });
    prop_oneof![node, namespace, pod, generated]
}

proptest! {
    #[test]
    fn every_step_projects_as_if_from_nothing(
        steps in prop::collection::vec((prop_oneof![object(), surroundings()], 0..8u8), 1..60),
    ) {
        let mut followed = Index::new(Settings::default());
        let mut there = std::collections::BTreeMap::new();
        for (object, dice) in &steps {
            let change = put(object);
            if *dice < 2 {
                there.remove(&id(&change));
                followed.apply(Change::Remove(id(&change)));
            } else {
                there.insert(id(&change), change.clone());
                followed.apply(change);
            }
            // Several changes between two projections, now and then.
            if *dice > 3 {
                if *dice == 7 {
                    // As after a panic.
                    (followed.memo, followed.changed) = (Memo::default(), Changed::lost());
                }
                let mut plain = Index::new(Settings::default());
                for change in there.values() {
                    plain.apply(change.clone());
                }
                prop_assert_eq!(followed.project(), plain.project());
            }
        }
    }

    #[test]
    fn equal_objects_in_any_order_project_equally(
        objects in prop::collection::vec(object(), 0..20),
        noise in prop::collection::vec(object(), 0..10),
        seed in any::<u64>(),
    ) {
        let mut last = std::collections::BTreeMap::new();
        for object in &objects {
            let change = put(object);
            last.insert(id(&change), change);
        }
        let mut plain = Index::new(Settings::default());
        last.values().cloned().for_each(|change| plain.apply(change));

        // The same objects, in another order, after others that come and go.
        let mut other = Index::new(Settings::default());
        for object in &noise {
            other.apply(put(object));
        }
        for object in &noise {
            other.project();
            other.apply(Change::Remove(id(&put(object))));
        }
        let mut shuffled: Vec<_> = last.values().cloned().collect();
        let len = shuffled.len().max(1);
        shuffled.rotate_left(usize::try_from(seed % len as u64).unwrap());
        shuffled.reverse();
        for change in shuffled {
            other.apply(change);
        }
        prop_assert_eq!(plain.project(), other.project());
    }
}

#[test]
fn what_did_not_change_is_the_same_allocation() {
    let mut index = Index::new(Settings::default());
    index.apply(put(&service("shop", "a", json!({}))));
    let first = index.project();
    let b = json!({ "spec": { "clusterIP": "10.96.0.8", "clusterIPs": ["10.96.0.8"] } });
    index.apply(put(&service("shop", "b", b)));
    let second = index.project();
    let key = ServiceKey::new("shop", "a");
    assert!(Arc::ptr_eq(&first.services[&key], &second.services[&key]));
    assert_eq!(second.services.len(), 2);
}
