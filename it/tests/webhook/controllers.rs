//! Pods that controllers make: they have a generateName, and no namespace in the object.

use std::time::Duration;

use it::eventually;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::audit::ours;
use crate::stage::{Stage, inits};

fn workload(kind: &str, labels: &Value) -> Value {
    let template = json!({
        "metadata": { "labels": labels },
        "spec": { "restartPolicy": "Always", "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let (api_version, spec) = match kind {
        "Job" => {
            let mut template = template;
            template["spec"]["restartPolicy"] = json!("Never");
            ("batch/v1", json!({ "template": template }))
        }
        "StatefulSet" => (
            "apps/v1",
            json!({ "replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "web", "selector": selector, "template": template }),
        ),
        _ => ("apps/v1", json!({ "replicas": 2, "selector": selector, "template": template })),
    };
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "web" }, "spec": spec })
}

/// The pods of a namespace, once there are this many.
async fn pods(stage: &Stage, namespace: &str, count: usize) -> Vec<Value> {
    let api: Api<Pod> = Api::namespaced(stage.client.clone(), namespace);
    let ask = || async {
        let pods = api.list(&ListParams::default()).await?.items;
        anyhow::ensure!(pods.len() == count, "{} of {count} pods", pods.len());
        Ok(pods)
    };
    let pods = eventually("pods", Duration::from_mins(1), ask).await.unwrap();
    pods.iter().map(|pod| serde_json::to_value(pod).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pods_of_controllers_are_like_all_others() {
    let stage = Stage::start(&[]).await;
    let table = [
        ("by-namespace", "Deployment", json!({ "app": "web" }), Some("namespaces.aether.io"), 2),
        (
            "by-pod",
            "Deployment",
            json!({ "app": "web", "aether.io/managed": "true" }),
            Some("pods.aether.io"),
            2,
        ),
        ("neither", "Deployment", json!({ "app": "web" }), None, 2),
        (
            "stateful",
            "StatefulSet",
            json!({ "app": "web", "aether.io/managed": "true" }),
            Some("pods.aether.io"),
            2,
        ),
        (
            "job",
            "Job",
            json!({ "app": "web", "aether.io/managed": "true" }),
            Some("pods.aether.io"),
            1,
        ),
    ];
    for (namespace, kind, labels, entry, count) in table {
        let managed = if namespace == "by-namespace" {
            json!({ "aether.io/managed": "true" })
        } else {
            json!({})
        };
        stage.namespace(namespace, managed).await;
        let text = workload(kind, &labels).to_string();
        stage.cluster.kubectl(&["apply", "-n", namespace, "-f", "-"], &text).await.unwrap();
        for pod in pods(&stage, namespace, count).await {
            let gates = if entry.is_some() { vec!["aether-identity-ready"] } else { vec![] };
            assert_eq!(inits(&pod), gates, "{namespace}");
            assert_eq!(
                pod["metadata"]["labels"].get("aether.io/managed").is_some(),
                entry.is_some()
            );
        }
        let events = stage.audit.events(namespace, "create");
        assert_eq!(events.len(), count, "{namespace}");
        for event in events {
            let entries: Vec<_> = ours(&event).into_iter().map(|call| call.entry).collect();
            assert_eq!(
                entries,
                vec![entry.unwrap_or_default(); if entry.is_some() { 2 } else { 0 }],
                "{namespace}"
            );
        }
    }
}

/// Whoever reads the events of a ReplicaSet sees the whole reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_reaches_the_user_of_a_controller_and_of_kubectl() {
    let stage = Stage::start(&[]).await;
    stage.namespace("shop", json!({ "aether.io/managed": "true" })).await;
    let mut deployment = workload("Deployment", &json!({ "app": "web" }));
    let spec = &mut deployment["spec"]["template"]["spec"];
    spec["volumes"] = json!([{ "name": "sockets", "csi": { "driver": "csi.aether.io" } }]);
    let text = deployment.to_string();
    stage.cluster.kubectl(&["apply", "-n", "shop", "-f", "-"], &text).await.unwrap();
    let ask = || async {
        let events =
            stage.cluster.kubectl(&["get", "events", "-n", "shop", "-o", "yaml"], "").await?;
        let words: Vec<_> = events.split_whitespace().collect();
        let events = words.join(" ");
        for part in
            ["denied the request", "Pod shop/web-", "spec.securityContext.fsGroup", "fsGroup: 1000"]
        {
            anyhow::ensure!(events.contains(part), "{part:?} is not in {events}");
        }
        Ok(())
    };
    eventually("the event", Duration::from_mins(1), ask).await.unwrap();

    let mut pod = crate::stage::pod("web", json!({}));
    pod["spec"]["volumes"] = json!([{ "name": "sockets", "csi": { "driver": "csi.aether.io" } }]);
    pod["metadata"]["annotations"] = json!({ "endpoint.aether.io/uds-socket": "sockets/a/b" });
    let admin = stage.cluster.admin();
    let args = ["create", "-n", "shop", "-f", "-"];
    let answer = stage.cluster.kubectl_as(&admin, &args, &pod.to_string()).await.unwrap();
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(!answer.status.success());
    for part in [
        "Forbidden",
        "namespaces.aether.io",
        "Pod shop/web",
        "fsGroup",
        "\"sockets/a/b\"",
        "\"a/b\"",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    // Opted out, the same pod is let through.
    pod["metadata"]["labels"] = json!({ "aether.io/managed": "false" });
    stage.cluster.kubectl(&args, &pod.to_string()).await.unwrap();
}
