//! What never reaches us, what must leave no trace, and what warnings users see.

use serde_json::json;

use crate::audit::ours;
use crate::stage::{Stage, inits, pod, pod_with};

#[tokio::test(flavor = "multi_thread")]
async fn updates_deletes_and_ephemeral_containers_never_reach_us() {
    let stage = Stage::start(&[]).await;
    stage.namespace("shop", json!({ "aether.io/managed": "true" })).await;
    stage.create("shop", &pod("web", json!({}))).await.unwrap();
    // A pod that has nothing of ours: made while the webhook did not count.
    stage.create("shop", &pod("late", json!({ "aether.io/managed": "no" }))).await.unwrap();
    for name in ["web", "late"] {
        let args: [Vec<&str>; 2] = match name {
            "web" => [
                vec!["label", "-n", "shop", "pod/web", "a=b"],
                vec!["annotate", "-n", "shop", "pod/web", "endpoint.aether.io/uds-socket=x"],
            ],
            _ => [
                vec!["label", "--overwrite", "-n", "shop", "pod/late", "aether.io/managed=true"],
                vec!["annotate", "-n", "shop", "pod/late", "a=b"],
            ],
        };
        for args in args {
            stage.cluster.kubectl(&args, "").await.unwrap();
        }
        let debug = json!({ "spec": { "ephemeralContainers": [{ "name": "debug", "image": "busybox", "targetContainerName": "web" }] } });
        let request = http::Request::patch(format!(
            "/api/v1/namespaces/shop/pods/{name}/ephemeralcontainers"
        ))
        .header("content-type", "application/strategic-merge-patch+json")
        .body(debug.to_string().into_bytes())
        .unwrap();
        stage.client.request::<serde_json::Value>(request).await.unwrap();
    }
    stage
        .cluster
        .kubectl(&["delete", "-n", "shop", "pods", "--all", "--wait=false"], "")
        .await
        .unwrap();
    let mut events = stage.audit.events("shop", "patch");
    assert!(events.len() >= 6, "{}", events.len());
    events.extend(stage.audit.events("shop", "update"));
    let deleted = stage.audit.events("shop", "delete");
    assert_eq!(deleted.len(), 2);
    for event in events.iter().chain(&deleted) {
        assert!(ours(event).is_empty(), "{event}");
        assert!(event["responseStatus"]["code"].as_u64().unwrap() < 300, "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_what_would_be_and_leaves_nothing() {
    let stage = Stage::start(&[]).await;
    stage.namespace("shop", json!({ "aether.io/managed": "true" })).await;
    let args = ["create", "-n", "shop", "--dry-run=server", "-o", "json", "-f", "-"];
    let shown = stage.cluster.kubectl(&args, &pod("web", json!({})).to_string()).await.unwrap();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(inits(&shown), ["aether-identity-ready"]);
    let left =
        stage.cluster.kubectl(&["get", "pods", "-n", "shop", "-o", "name"], "").await.unwrap();
    assert_eq!(left, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gets_less_is_told_by_kubectl_once() {
    let stage = Stage::start(&[]).await;
    stage.namespace("shop", json!({ "aether.io/managed": "true" })).await;
    let admin = stage.cluster.admin();
    let table = [
        (json!({}), vec![]),
        (json!({ "dnsPolicy": "Default" }), vec!["dnsPolicy Default"]),
        (
            json!({ "initContainers": [{ "name": "aether-identity-ready", "image": "x" }] }),
            vec!["no identity gate: a container"],
        ),
    ];
    for (index, (spec, parts)) in table.into_iter().enumerate() {
        let asked = pod_with(&format!("pod-{index}"), json!({}), &spec).to_string();
        let done = stage
            .cluster
            .kubectl_as(&admin, &["create", "-n", "shop", "-f", "-"], &asked)
            .await
            .unwrap();
        assert!(done.status.success());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(said.matches("Warning: aether: ").count(), parts.len(), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}
