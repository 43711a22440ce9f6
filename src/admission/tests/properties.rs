//! Over generated pods: the patch applies, gives what the specification says, keeps all else, and
//! has nothing to do the second time.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::generate::pod;
use super::reviews::{request, review};
use super::specification::expected;
use super::*;
use crate::admission::Review;

/// Every value of a pod that is no map or list, with its path; the items of lists by what they
/// are called, or by their place where they are called nothing.
fn leaves(value: &Value, path: String, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                leaves(value, format!("{path}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                let name = value.get("name").map_or(index.to_string(), Value::to_string);
                leaves(value, format!("{path}[{name}]"), found);
            }
        }
        leaf => {
            found.insert(path, leaf.clone());
        }
    }
}

/// What a patch may not do, whatever it is for.
fn is_minimal(pod: &Value, operations: &Value) {
    let mut moves = 0;
    for operation in operations.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        match operation["op"].as_str().unwrap() {
            "add" => {
                let there = pod.pointer(path).is_some_and(|value| !value.is_null());
                // In front of a list's first item nothing is written over.
                assert!(!there || path == "/spec/initContainers/0", "{path} is there");
            }
            "move" => moves += 1,
            "test" => assert_eq!(operation["value"], "aether-identity-ready"),
            other => panic!("{other} of {path}"),
        }
    }
    assert!(moves <= 1);
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 1500, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_patch_gives_what_the_specification_says(
        pod in pod(),
        by_namespace: bool,
        with_gate: bool,
        namespace in prop_oneof![9 => Just("shop"), 1 => Just("Kube-System")],
    ) {
        let settings = if with_gate { settings() } else { without_gate() };
        let entry = if by_namespace { Entry::Namespace } else { Entry::Pod };
        let image = with_gate.then_some("registry.example/aether:1.2.3");
        let expected = expected(&pod, namespace, by_namespace, image);
        let decision = decide_pod(&pod, namespace, entry, &settings).unwrap();
        let Some(expected) = expected else {
            prop_assert!(matches!(decision, Decision::Denied(_)), "{:?}", decision);
            return Ok(());
        };
        prop_assert!(!matches!(decision, Decision::Denied(_)), "{:?}", decision);
        let operations = patch(&decision, &pod);
        is_minimal(&pod, &serde_json::to_value(&operations).unwrap());
        let mut after = pod.clone();
        json_patch::patch(&mut after, &operations.0).unwrap();
        prop_assert_eq!(&after, &expected);

        // Nothing is lost.
        let (mut before, mut now) = (BTreeMap::new(), BTreeMap::new());
        leaves(&pod, String::new(), &mut before);
        leaves(&after, String::new(), &mut now);
        for (path, value) in before.into_iter().filter(|(_, value)| !value.is_null()) {
            prop_assert_eq!(now.get(&path), Some(&value), "{}", path);
        }

        // Nothing is left to do, whichever entry calls the second time.
        let again = decide_pod(&after, namespace, entry, &settings).unwrap();
        prop_assert_eq!(patch(&again, &after).0.len(), 0);
        if after != pod {
            let other = decide_pod(&after, namespace, Entry::Pod, &settings).unwrap();
            prop_assert_eq!(patch(&other, &after).0.len(), 0);
        }
    }

    /// What is left out of a pod when it is read changes neither the decision nor the patch.
    #[test]
    fn the_lean_pod_decides_as_the_whole_one(pod in pod(), by_namespace: bool, extra in any_json()) {
        let entry = if by_namespace { Entry::Namespace } else { Entry::Pod };
        let mut pod = pod;
        for place in ["/metadata", "/spec", "/spec/containers/0", "/spec/initContainers/0"] {
            if let Some(Value::Object(map)) = pod.pointer_mut(place) {
                for name in ["env", "args", "managedFields", "affinity", "securityContext"] {
                    // A pod's own is looked at: it may name a group.
                    if (place, name) != ("/spec", "securityContext") {
                        map.entry(name).or_insert(extra.clone());
                    }
                }
            }
        }
        let lean = Review::read(&review(&request(&pod))).unwrap().object.unwrap();
        let (of_whole, of_lean) = [&pod, &lean]
            .map(|pod| decide_pod(pod, "shop", entry, &settings()).unwrap())
            .into();
        prop_assert_eq!(&of_whole, &of_lean);
        prop_assert_eq!(patch(&of_whole, &pod).0, patch(&of_lean, &lean).0);
    }

    /// What no pod looks like is refused or left alone, and never takes the process down.
    #[test]
    fn any_json_has_an_answer(broken in any_json(), pod in pod(), place in 0_usize..12) {
        const PLACES: [&str; 12] = [
            "/metadata", "/spec", "/metadata/labels", "/metadata/annotations", "/spec/volumes",
            "/spec/containers", "/spec/initContainers", "/spec/dnsConfig", "/spec/dnsPolicy",
            "/spec/hostNetwork", "/spec/os", "/spec/securityContext",
        ];
        let mut pod = pod;
        if let Some(value) = pod.pointer_mut(PLACES[place]) {
            *value = broken.clone();
        }
        for pod in [&pod, &broken] {
            for entry in Entry::ALL {
                if let Ok(decision) = decide_pod(pod, "shop", entry, &settings()) {
                    let mut after = pod.clone();
                    json_patch::patch(&mut after, &patch(&decision, pod).0).unwrap();
                }
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/~]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let key = prop_oneof![Just("name".to_owned()), "[a-z]{1,3}"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

#[test]
fn the_specification_itself_is_no_echo() {
    let pod = pod_with(json!({ "metadata": { "labels": { "aether.io/managed": "true" } } }));
    let after = expected(&pod, "shop", false, Some("i")).unwrap();
    assert_eq!(after["spec"]["initContainers"][0]["name"], "aether-identity-ready");
    assert_eq!(after["spec"]["dnsConfig"]["options"].as_array().unwrap().len(), 3);
    let denied =
        pod_with(json!({ "metadata": { "annotations": { "endpoint.aether.io/uds-socket": "" } } }));
    assert_eq!(expected(&denied, "shop", false, None), None);
}
