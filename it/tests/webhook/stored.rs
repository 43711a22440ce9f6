//! The pod as it is stored, field by field: with the webhook it is what it is without, and what the contract adds.

use serde_json::{Value, json};

use crate::stage::{Stage, inits, pod};

/// A pod with much in it.
fn rich(name: &str) -> Value {
    let mut pod = pod(name, json!({ "app": "web", "app.kubernetes.io/name": "we_b.1" }));
    pod["metadata"]["annotations"] =
        json!({ "example.com/a_b": "1", "text": "<a href=\"x\">&</a>\n\u{1f600}" });
    pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
    pod["spec"] = json!({
        "containers": [
            {
                "name": "web", "image": "web:1", "command": ["/web"], "args": ["--a=$(B)", "<>&"],
                "env": [{ "name": "B", "value": "1" }, { "name": "IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
                "ports": [{ "containerPort": 8080, "name": "http" }],
                "resources": { "requests": { "cpu": "0.1", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }, { "name": "config", "mountPath": "/etc/x", "subPath": "x" }],
                "readinessProbe": { "httpGet": { "path": "/", "port": "http" }, "periodSeconds": 3 },
                "securityContext": { "runAsUser": 1000 },
            },
            { "name": "log", "image": "log:2", "lifecycle": { "preStop": { "exec": { "command": ["true"] } } } },
        ],
        "initContainers": [
            { "name": "proxy", "image": "p", "restartPolicy": "Always", "startupProbe": { "exec": { "command": ["true"] } } },
            { "name": "migrate", "image": "m", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] },
        ],
        "volumes": [
            { "name": "data", "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } },
            { "name": "config", "projected": { "sources": [{ "configMap": { "name": "c" } }] } },
        ],
        "dnsConfig": { "searches": ["corp.example"], "options": [{ "name": "edns0" }] },
        "securityContext": { "fsGroup": 0, "sysctls": [{ "name": "net.ipv4.ip_unprivileged_port_start", "value": "0" }] },
        "nodeSelector": { "kubernetes.io/os": "linux" },
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            { "weight": 1, "podAffinityTerm": { "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } } } },
        ] } },
        "tolerations": [{ "key": "a", "operator": "Exists" }],
        "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway" }],
        "hostAliases": [{ "ip": "192.0.2.1", "hostnames": ["a"] }],
        "terminationGracePeriodSeconds": 7,
        "schedulingGates": [{ "name": "example.com/gate" }],
        "readinessGates": [{ "conditionType": "example.com/x" }],
        "overhead": null,
    });
    pod
}

/// A stored pod without what differs between any two: identities, times, and the token's volume's random name.
fn plain(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let metadata = pod["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp", "namespace", "managedFields"] {
        metadata.remove(key);
    }
    pod.as_object_mut().unwrap().remove("status");
    let names = pod["spec"]["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["name"].as_str().unwrap().to_owned());
    let token = names.into_iter().find(|name| name.starts_with("kube-api-access-")).unwrap();
    serde_json::from_str(&pod.to_string().replace(&token, "kube-api-access")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_contract_names_is_added() {
    let stage = Stage::start(&[]).await;
    stage.namespace("plain", json!({})).await;
    stage.namespace("managed", json!({ "aether.io/managed": "true" })).await;
    let without = plain(&stage.create("plain", &rich("web")).await.unwrap());
    let mut with = plain(&stage.create("managed", &rich("web")).await.unwrap());
    assert_eq!(inits(&with), ["aether-identity-ready", "proxy", "migrate"]);

    let gate = with["spec"]["initContainers"].as_array_mut().unwrap().remove(0);
    let expected = json!({
        "name": "aether-identity-ready",
        "image": crate::stage::IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/identity-ready", "--spire-workload-socket=/run/secrets/workload-spiffe-uds/socket"],
        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
            "runAsGroup": 65532, "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": { "type": "RuntimeDefault" },
        },
        // Defaults and the token's mount, by the API server.
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            { "name": "aether-identity-gate-spiffe", "mountPath": "/run/secrets/workload-spiffe-uds", "readOnly": true },
            { "name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true },
        ],
    });
    assert_eq!(gate, expected);

    let volumes = with["spec"]["volumes"].as_array_mut().unwrap();
    let place =
        volumes.iter().position(|volume| volume["name"] == "aether-identity-gate-spiffe").unwrap();
    let volume = volumes.remove(place);
    assert_eq!(
        volume,
        json!({ "name": "aether-identity-gate-spiffe", "csi": { "driver": "csi.spiffe.io", "readOnly": true } })
    );

    let options = with["spec"]["dnsConfig"]["options"].as_array_mut().unwrap();
    let added = options.split_off(1);
    assert_eq!(
        json!(added),
        json!([
            { "name": "ndots", "value": "2" }, { "name": "timeout", "value": "1" }, { "name": "attempts", "value": "3" },
        ])
    );
    let label = with["metadata"]["labels"].as_object_mut().unwrap().remove("aether.io/managed");
    assert_eq!(label, Some(json!("true")));

    assert_eq!(with, without);
}

/// A pod made again from what `kubectl get -o yaml` showed of an admitted one is the same pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_made_again_from_what_was_stored_gets_nothing_twice() {
    let stage = Stage::start(&[]).await;
    stage.namespace("managed", json!({ "aether.io/managed": "true" })).await;
    let first = stage.create("managed", &rich("web")).await.unwrap();
    let mut again = first.clone();
    let metadata = again["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        metadata.remove(key);
    }
    metadata["name"] = json!("again");
    again.as_object_mut().unwrap().remove("status");
    let second = stage.create("managed", &again).await.unwrap();
    let mut second = plain(&second);
    second["metadata"]["name"] = json!("web");
    assert_eq!(second, plain(&first));
    let calls = crate::audit::ours(&stage.audit.created("managed", "again").await);
    assert!(calls.iter().all(|call| !call.mutated), "{calls:?}");
}
