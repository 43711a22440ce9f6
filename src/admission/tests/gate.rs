//! The identity gate.

use serde_json::{Value, json};

use super::*;
use crate::admission::decide::{GateStep, Place, Skip};

/// What is done about the gate.
fn step(pod: &Value, settings: &Settings) -> GateStep {
    match decided(pod, settings) {
        Decision::Managed(managed) => managed.gate,
        other => panic!("{other:?}"),
    }
}

/// The names of the init containers after admission.
fn inits(pod: &Value) -> Vec<String> {
    let list = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
    list.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_gate_is_what_the_contract_says() {
    let admitted = admitted(&pod(), &settings());
    assert_eq!(
        admitted["spec"]["initContainers"],
        json!([{
            "name": "aether-identity-ready",
            "image": "registry.example/aether:1.2.3",
            "imagePullPolicy": "IfNotPresent",
            "command": [
                "/identity-ready",
                "--spire-workload-socket=/run/secrets/workload-spiffe-uds/socket",
            ],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "readOnlyRootFilesystem": true,
                "runAsGroup": 65532,
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "volumeMounts": [{
                "name": "aether-identity-gate-spiffe",
                "mountPath": "/run/secrets/workload-spiffe-uds",
                "readOnly": true,
            }],
        }])
    );
    assert_eq!(
        admitted["spec"]["volumes"],
        json!([{
            "name": "aether-identity-gate-spiffe",
            "csi": { "driver": "csi.spiffe.io", "readOnly": true },
        }])
    );
    // In the gate alone.
    assert_eq!(admitted["spec"]["containers"], pod()["spec"]["containers"]);
}

#[test]
fn its_settings_shape_it() {
    let gate = gate(|spec| {
        spec.image = "localhost:5000/a/b@sha256:".to_owned() + &"0a".repeat(32);
        spec.pull_policy = "Always".to_owned();
        spec.socket = "/spiffe/agent.sock".to_owned();
        spec.timeout = Some("1m30s".to_owned());
        spec.user = 1000;
        spec.cpu.request = Some("10m".to_owned());
        spec.cpu.limit = Some("100m".to_owned());
    });
    let settings = Settings { gate: Some(gate), ..settings() };
    let container = admitted(&pod(), &settings)["spec"]["initContainers"][0].clone();
    assert!(container["image"].as_str().unwrap().starts_with("localhost:5000/a/b@sha256:"));
    assert_eq!(container["imagePullPolicy"], "Always");
    let command =
        ["/identity-ready", "--spire-workload-socket=/spiffe/agent.sock", "--timeout=1m30s"];
    assert_eq!(container["command"], json!(command));
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/spiffe");
    assert_eq!(container["securityContext"]["runAsUser"], 1000);
    assert_eq!(
        container["resources"],
        json!({ "requests": { "cpu": "10m" }, "limits": { "cpu": "100m" } })
    );
}

#[test]
fn it_is_left_out_where_it_cannot_or_may_not_be() {
    let annotated = |value: &str| json!({ "metadata": { "annotations": { "aether.io/identity-gate": value } } });
    let table = [
        (annotated("false"), Some(Skip::Annotation)),
        // The opt-out is exactly this.
        (annotated("False"), None),
        (annotated("FALSE"), None),
        (annotated("no"), None),
        (annotated("0"), None),
        (annotated("true"), None),
        (annotated(""), None),
        (annotated(" false"), None),
        (json!({ "spec": { "hostNetwork": true } }), Some(Skip::HostNetwork)),
        (json!({ "spec": { "hostNetwork": false } }), None),
        (json!({ "spec": { "os": { "name": "windows" } } }), Some(Skip::Windows)),
        (json!({ "spec": { "os": { "name": "linux" } } }), None),
        (
            json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "windows" } } }),
            Some(Skip::Windows),
        ),
        (
            json!({ "spec": { "nodeSelector": { "beta.kubernetes.io/os": "windows" } } }),
            Some(Skip::Windows),
        ),
        (json!({ "spec": { "nodeSelector": { "kubernetes.io/os": "linux" } } }), None),
        (json!({ "spec": { "nodeSelector": { "kubernetes.io/arch": "windows" } } }), None),
    ];
    for (change, expected) in table {
        let pod = pod_with(change.clone());
        match (step(&pod, &settings()), expected) {
            (GateStep::Skipped(skip), Some(expected)) => {
                assert_eq!(skip, expected, "{change}");
                let admitted = admitted(&pod, &settings());
                assert!(inits(&admitted).is_empty(), "{change}");
                assert_eq!(admitted["spec"].get("volumes"), None, "{change}");
            }
            (GateStep::Present { container: Place::Add(_), .. }, None) => {}
            (step, expected) => panic!("{change}: {step:?}, not {expected:?}"),
        }
    }
    assert_eq!(step(&pod(), &without_gate()), GateStep::Off);
}

/// The gate as it comes back from the API server: with its defaults, the token that the
/// ServiceAccount plugin mounts, and a LimitRange's values.
fn came_back() -> Value {
    let mut pod = admitted(&pod(), &settings());
    let gate = &mut pod["spec"]["initContainers"][0];
    gate["terminationMessagePath"] = json!("/dev/termination-log");
    gate["terminationMessagePolicy"] = json!("File");
    gate["resources"] = json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "100m" } });
    let token = json!({ "name": "kube-api-access-x", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" });
    gate["volumeMounts"].as_array_mut().unwrap().insert(0, token);
    pod["spec"]["volumes"].as_array_mut().unwrap().push(json!({ "name": "kube-api-access-x" }));
    pod
}

#[test]
fn what_the_api_server_adds_to_it_changes_nothing() {
    let pod = came_back();
    assert_eq!(operations(&pod, &settings()), json!([]));
}

/// A pod made again from what `kubectl get` showed carries the gate of an earlier configuration.
/// That one waits where its own volume is mounted; a second one beside it would be refused.
#[test]
fn the_gate_of_an_earlier_configuration_is_known() {
    let pod = came_back();
    let other = gate(|spec| {
        spec.socket = "/elsewhere/socket".to_owned();
        spec.timeout = Some("5s".to_owned());
        spec.image = "other:2".to_owned();
    });
    let settings = Settings { gate: Some(other), ..settings() };
    assert_eq!(operations(&pod, &settings), json!([]));
}

#[test]
fn another_injector_in_front_is_put_behind_by_one_move() {
    let mut pod = came_back();
    let list = pod["spec"]["initContainers"].as_array_mut().unwrap();
    list.insert(0, json!({ "name": "vault-agent-init", "image": "v" }));
    list.insert(1, json!({ "name": "istio-proxy", "image": "i", "restartPolicy": "Always" }));
    assert_eq!(
        operations(&pod, &settings()),
        json!([
            { "op": "test", "path": "/spec/initContainers/2/name", "value": "aether-identity-ready" },
            { "op": "move", "from": "/spec/initContainers/2", "path": "/spec/initContainers/0" },
        ])
    );
    let admitted = admitted(&pod, &settings());
    assert_eq!(inits(&admitted), ["aether-identity-ready", "vault-agent-init", "istio-proxy"]);
    // The others are what they were, in the order that they had.
    assert_eq!(admitted["spec"]["initContainers"][1], pod["spec"]["initContainers"][0]);
    assert_eq!(admitted["spec"]["initContainers"][2], pod["spec"]["initContainers"][1]);
}

#[test]
fn it_stands_before_sidecars_and_others_that_were_there_first() {
    let pod = pod_with(json!({ "spec": { "initContainers": [
        { "name": "istio-proxy", "image": "i", "restartPolicy": "Always" },
        { "name": "migrate", "image": "m" },
    ] } }));
    let admitted = admitted(&pod, &settings());
    assert_eq!(inits(&admitted), ["aether-identity-ready", "istio-proxy", "migrate"]);
    let paths: Vec<_> = operations(&pod, &settings())
        .as_array()
        .unwrap()
        .iter()
        .map(|op| op["path"].clone())
        .collect();
    assert!(paths.contains(&json!("/spec/initContainers/0")), "{paths:?}");
}

#[test]
fn what_only_bears_our_name_is_not_ours() {
    let ours = came_back()["spec"]["initContainers"][0].clone();
    let with = |key: &str, value: Value| {
        let mut container = ours.clone();
        container[key] = value;
        container
    };
    let volume = json!({ "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } });
    let table = [
        ("no command", with("command", Value::Null)),
        ("empty command", with("command", json!([]))),
        ("another command", with("command", json!(["/bin/sh", "/identity-ready"]))),
        ("no socket", with("command", json!(["/identity-ready"]))),
        (
            "a socket elsewhere",
            with("command", json!(["/identity-ready", "--spire-workload-socket=/tmp/socket"])),
        ),
        ("no mount", with("volumeMounts", json!([]))),
        ("no mounts at all", with("volumeMounts", Value::Null)),
        (
            "the mount of another volume",
            with(
                "volumeMounts",
                json!([{ "name": "x", "mountPath": "/run/secrets/workload-spiffe-uds" }]),
            ),
        ),
        (
            "a mount elsewhere",
            with(
                "volumeMounts",
                json!([{ "name": "aether-identity-gate-spiffe", "mountPath": "/x" }]),
            ),
        ),
        ("the name alone", json!({ "name": "aether-identity-ready", "image": "busybox" })),
    ];
    for (what, container) in table {
        let pod = pod_with(
            json!({ "spec": { "initContainers": [{ "name": "a" }, container], "volumes": [volume] } }),
        );
        assert_eq!(step(&pod, &settings()), GateStep::Skipped(Skip::ForeignContainer), "{what}");
        let admitted = admitted(&pod, &settings());
        assert_eq!(admitted["spec"]["initContainers"], pod["spec"]["initContainers"], "{what}");
        assert_eq!(admitted["spec"]["volumes"], pod["spec"]["volumes"], "{what}");
    }
    // An app container of the name, and the name twice.
    let app = pod_with(json!({ "spec": { "containers": [{ "name": "aether-identity-ready" }] } }));
    assert_eq!(step(&app, &settings()), GateStep::Skipped(Skip::ForeignContainer));
    let twice =
        pod_with(json!({ "spec": { "initContainers": [ours, ours], "volumes": [volume] } }));
    assert_eq!(step(&twice, &settings()), GateStep::Skipped(Skip::ForeignContainer));
}

#[test]
fn a_foreign_volume_of_our_volumes_name_is_left_alone() {
    let table = [
        json!({ "emptyDir": {} }),
        json!({ "csi": { "driver": "csi.example", "readOnly": true } }),
        json!({ "csi": { "driver": "csi.spiffe.io" } }),
        json!({ "csi": { "driver": "csi.spiffe.io", "readOnly": false } }),
        json!({ "hostPath": { "path": "/run" } }),
        json!({}),
    ];
    for mut volume in table {
        volume["name"] = json!("aether-identity-gate-spiffe");
        let pod = pod_with(json!({ "spec": { "volumes": [{ "name": "data" }, volume] } }));
        assert_eq!(step(&pod, &settings()), GateStep::Skipped(Skip::ForeignVolume), "{volume}");
        let admitted = admitted(&pod, &settings());
        assert_eq!(admitted["spec"]["volumes"], pod["spec"]["volumes"], "{volume}");
        assert!(inits(&admitted).is_empty(), "{volume}");
    }
    // Ours without the container is used, and not added again.
    let own = json!({ "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } });
    let pod = pod_with(json!({ "spec": { "volumes": [own] } }));
    let admitted = admitted(&pod, &settings());
    assert_eq!(admitted["spec"]["volumes"], json!([own]));
    assert_eq!(inits(&admitted), ["aether-identity-ready"]);
}

/// The container came through and its volume did not: another's patch took it, or a hand.
#[test]
fn a_gate_without_its_volume_gets_it_again() {
    let mut pod = came_back();
    pod["spec"]["volumes"] = json!([{ "name": "kube-api-access-x" }]);
    assert_eq!(
        operations(&pod, &settings()),
        json!([{
            "op": "add",
            "path": "/spec/volumes/-",
            "value": { "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } },
        }])
    );
}
