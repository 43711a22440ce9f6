//! Tests of index and projection: objects as JSON in, projection out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::needless_pass_by_value, clippy::unnecessary_box_returns)]

mod claims;
mod endpoints;
pub(crate) mod order;
mod registry;
mod services;
mod upstreams;

use serde_json::{Value, json};

use super::{Change, Id, Index, Object, ObjectKind, Settings};
use crate::model::{Finding, MeshNames, MeshService, Projection, Reason, ServiceKey};

/// The change that puts an object given as JSON.
pub fn put(value: &Value) -> Change {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind").to_owned();
    let value = value.clone();
    let (kind, object) = match kind.as_str() {
        "Namespace" => (ObjectKind::Namespace, Object::Namespace(from(value.clone()))),
        "Node" => (ObjectKind::Node, Object::Node(from(value.clone()))),
        "Service" => (ObjectKind::Service, Object::Service(from(value.clone()))),
        "EndpointSlice" => (ObjectKind::EndpointSlice, Object::EndpointSlice(from(value.clone()))),
        "Pod" => (ObjectKind::Pod, Object::Pod(from(value.clone()))),
        other => panic!("no such kind {other}"),
    };
    let id = Id {
        kind,
        namespace: text("/metadata/namespace").into(),
        name: text("/metadata/name").into(),
    };
    Change::Put { id, object, origin: None }
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> Box<T> {
    Box::new(serde_json::from_value(value).unwrap())
}

/// The projection of objects.
pub fn project(objects: &[Value]) -> Projection {
    let settings = Settings::new(MeshNames::default(), ["spire-system"], vec![25]);
    let mut index = Index::new(settings);
    for object in objects {
        index.apply(put(object));
    }
    index.project()
}

/// A labelled Service with one port 80 and a ClusterIP; `more` is merged over it.
pub fn service(namespace: &str, name: &str, more: Value) -> Value {
    let mut base = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "namespace": namespace, "name": name, "labels": { "aether.io/mesh-service": "true" } },
        "spec": {
            "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "selector": { "app": name },
            "ports": [{ "name": "web", "port": 80, "protocol": "TCP" }]
        }
    });
    merge(&mut base, more);
    base
}

/// Annotations, to be merged over an object.
pub fn annotated(key: &str, value: &str) -> Value {
    json!({ "metadata": { "annotations": { key: value } } })
}

/// Merges objects key by key; everything else is replaced.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// The service of a key that reads `<ns>/<name>`.
pub fn get(projection: &Projection, key: &str) -> MeshService {
    let key: ServiceKey = key.parse().unwrap();
    projection.services.get(&key).unwrap_or_else(|| panic!("no {key}")).as_ref().clone()
}

/// The findings of a reason.
pub fn found(projection: &Projection, reason: Reason) -> Vec<&Finding> {
    projection.findings.iter().filter(|finding| finding.reason == reason).collect()
}
