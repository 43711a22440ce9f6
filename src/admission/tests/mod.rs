//! Tests of the pure parts. Each applies the patch with another implementation of JSON Patch than
//! ours, which only writes them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::string_slice, clippy::needless_pass_by_value)]

mod answers;
mod carrier;
mod gate;
mod generate;
mod properties;
mod qos;
mod reports;
mod resolver;
mod reviews;
mod scope;
mod specification;
mod workloads;

use serde_json::{Value, json};

use super::settings::GateSpec;
use super::{Decision, Entry, Gate, Settings, decide_pod, patch};
use crate::index;
use crate::model::MeshNames;

/// Settings with a gate.
fn settings() -> Settings {
    Settings { gate: Some(gate(|_| {})), ..without_gate() }
}

/// Settings without one.
fn without_gate() -> Settings {
    let never = ["aether-system", "spire-system", "spire-server", "spire-mgmt"];
    let index = index::Settings::new(MeshNames::default(), never, Vec::new());
    Settings { index, pod_ndots: true, gate: None }
}

/// A gate with the defaults, changed.
fn gate(change: impl FnOnce(&mut GateSpec)) -> Gate {
    let mut spec =
        GateSpec { image: "registry.example/aether:1.2.3".to_owned(), ..GateSpec::default() };
    change(&mut spec);
    Gate::new(spec).unwrap()
}

/// A pod as kubectl makes one, with the label and a plain container.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "web", "labels": { "app": "web", "aether.io/managed": "true" } },
        "spec": {
            "containers": [{ "name": "web", "image": "web:1", "resources": {} }],
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
        },
    })
}

/// The same, changed by merging.
fn pod_with(change: Value) -> Value {
    let mut pod = pod();
    json_patch::merge(&mut pod, &change);
    pod
}

fn decided(pod: &Value, settings: &Settings) -> Decision {
    decide_pod(pod, "shop", Entry::Pod, settings).unwrap()
}

/// The pod as it would be stored, after as many reviews as it takes; the last gives no operation.
fn admitted(pod: &Value, settings: &Settings) -> Value {
    admitted_by(pod, Entry::Pod, settings)
}

fn admitted_by(pod: &Value, entry: Entry, settings: &Settings) -> Value {
    let mut admitted = pod.clone();
    let decide = |pod: &Value| decide_pod(pod, "shop", entry, settings).unwrap();
    json_patch::patch(&mut admitted, &patch(&decide(pod), pod).0).unwrap();
    let again = patch(&decide(&admitted), &admitted);
    assert!(again.0.is_empty(), "a second review changes {again:?}");
    admitted
}

/// The operations on a pod.
fn operations(pod: &Value, settings: &Settings) -> Value {
    serde_json::to_value(patch(&decided(pod, settings), pod)).unwrap()
}
