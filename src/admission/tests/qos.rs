//! The QoS class, quotas and LimitRanges of a pod hold with the gate as without. The rules are
//! those of Kubernetes' own code, written down as they read.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

#[derive(Debug, PartialEq)]
enum Class {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// `ComputePodQOS`: init containers count like the others.
fn class(pod: &Value) -> Class {
    let lists = ["containers", "initContainers"].map(|key| pod["spec"][key].as_array().cloned());
    let all: Vec<Value> = lists.into_iter().flatten().flatten().collect();
    let amounts = |container: &Value, kind: &str| -> BTreeSet<(String, String)> {
        let map = container["resources"][kind].as_object().cloned().unwrap_or_default();
        let known = |key: &String| ["cpu", "memory"].contains(&key.as_str());
        map.into_iter()
            .filter(|(key, _)| known(key))
            .map(|(key, value)| (key, value.to_string()))
            .collect()
    };
    let any =
        all.iter().any(|c| !amounts(c, "requests").is_empty() || !amounts(c, "limits").is_empty());
    let guaranteed = all.iter().all(|c| {
        let limits = amounts(c, "limits");
        limits.len() == 2 && limits == amounts(c, "requests")
    });
    match (any, guaranteed) {
        (false, _) => Class::BestEffort,
        (true, true) => Class::Guaranteed,
        (true, false) => Class::Burstable,
    }
}

fn with_resources(all: &[Value]) -> Value {
    let container = |(index, resources): (usize, &Value)| json!({ "name": format!("c{index}"), "image": "i", "resources": resources });
    let containers: Vec<_> = all.iter().enumerate().map(container).collect();
    pod_with(json!({ "spec": { "containers": containers } }))
}

fn gate_resources(pod: &Value) -> Value {
    admitted(pod, &settings())["spec"]["initContainers"][0]["resources"].clone()
}

#[test]
fn the_class_stays() {
    let all = |cpu: &str, memory: &str| json!({ "cpu": cpu, "memory": memory });
    let full = json!({ "requests": all("1", "1Gi"), "limits": all("1", "1Gi") });
    let other = json!({ "requests": all("2", "2Gi"), "limits": all("2", "2Gi") });
    let some = json!({ "requests": { "cpu": "100m" } });
    let limit = json!({ "limits": { "memory": "1Gi" }, "requests": { "memory": "1Gi" } });
    let table = [
        (vec![full.clone()], Class::Guaranteed),
        (vec![full.clone(), other], Class::Guaranteed),
        (vec![full, some.clone()], Class::Burstable),
        (vec![some.clone()], Class::Burstable),
        (vec![limit], Class::Burstable),
        (vec![json!({}), some], Class::Burstable),
        (vec![json!({})], Class::BestEffort),
        (vec![Value::Null, Value::Null], Class::BestEffort),
        (
            vec![
                json!({ "limits": { "example.com/gpu": "1" }, "requests": { "example.com/gpu": "1" } }),
            ],
            Class::BestEffort,
        ),
    ];
    for (resources, expected) in table {
        let pod = with_resources(&resources);
        assert_eq!(class(&pod), expected, "{resources:?}");
        assert_eq!(class(&admitted(&pod, &settings())), expected, "{resources:?}");
    }
}

/// A quota on limits.cpu refuses a pod with a container that has no such limit.
#[test]
fn a_quota_finds_in_the_gate_what_it_finds_in_the_first_container() {
    for kind in ["limits", "requests"] {
        for resource in ["cpu", "memory"] {
            let pod = with_resources(&[json!({ (kind): { (resource): "1" } })]);
            assert_eq!(gate_resources(&pod), json!({ (kind): { (resource): "1" } }));
        }
    }
}

/// An init container runs before the others, so the pod's sum is the larger of the two: a gate that
/// asks for what the first container does adds nothing to what a quota counts.
#[test]
fn the_sum_of_the_pod_stays() {
    let pod = with_resources(&[
        json!({ "requests": { "cpu": "300m", "memory": "64Mi" } }),
        json!({ "requests": { "cpu": "200m" } }),
    ]);
    let admitted = admitted(&pod, &settings());
    let cpu = |containers: &Value| -> u64 {
        let of = |c: &Value| {
            c["resources"]["requests"]["cpu"]
                .as_str()
                .unwrap()
                .trim_end_matches('m')
                .parse::<u64>()
                .unwrap()
        };
        containers.as_array().unwrap().iter().map(of).sum()
    };
    assert!(cpu(&admitted["spec"]["initContainers"]) <= cpu(&admitted["spec"]["containers"]));
}

/// A LimitRange's min, max and ratio hold for the gate as they do for the first container: its
/// values are the same.
#[test]
fn a_limit_range_that_admits_the_first_container_admits_the_gate() {
    let amounts = json!({
        "requests": { "cpu": "250m", "memory": "64Mi" },
        "limits": { "cpu": 1, "memory": "0.5Gi" },
    });
    assert_eq!(gate_resources(&with_resources(&[amounts.clone(), json!({})])), amounts);
}

#[test]
fn what_is_no_cpu_or_memory_is_not_asked_for() {
    let pod = with_resources(&[json!({
        "requests": { "cpu": "1", "example.com/gpu": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi" },
        "limits": { "example.com/gpu": "1" },
        "claims": [{ "name": "gpu" }],
    })]);
    assert_eq!(gate_resources(&pod), json!({ "requests": { "cpu": "1" } }));
    assert_eq!(
        gate_resources(&with_resources(&[json!({ "limits": { "cpu": null } })])),
        Value::Null
    );
    assert_eq!(gate_resources(&pod_with(json!({ "spec": { "containers": [] } }))), Value::Null);
}

/// What is configured for cpu counts for cpu, request and limit together: a request of ours above
/// a limit of the pod's would be refused.
#[test]
fn the_configuration_counts_before_the_pod_by_resource() {
    let gate = gate(|spec| spec.cpu.request = Some("2".to_owned()));
    let settings = Settings { gate: Some(gate), ..settings() };
    let pod = with_resources(&[json!({
        "requests": { "cpu": "100m", "memory": "64Mi" },
        "limits": { "cpu": "200m", "memory": "128Mi" },
    })]);
    assert_eq!(
        admitted(&pod, &settings)["spec"]["initContainers"][0]["resources"],
        json!({ "requests": { "cpu": "2", "memory": "64Mi" }, "limits": { "memory": "128Mi" } })
    );
}
