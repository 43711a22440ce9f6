//! What the API server asks and refuses before it takes an object.

use anyhow::Context as _;
use it::cluster::{Cluster, Options};
use it::eventually;
use k8s_openapi::ByteString;

use crate::SOON;
use crate::webhook::Webhook;

/// A namespace that refuses most pods, and limits for the containers of another.
const RULES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: default}
spec: {limits: [{type: Container, default: {cpu: 100m}}]}
";

#[tokio::test]
async fn a_webhook_on_loopback_is_asked_and_namespaces_have_their_rules() {
    let cluster = Cluster::start(Options::controlled()).await.unwrap();
    let webhook = Webhook::start().await;
    let registration = serde_json::json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "it"},
        "webhooks": [{
            "name": "pods.it.example",
            "clientConfig": {"url": webhook.url, "caBundle": ByteString(webhook.bundle.clone())},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"],
            }],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
        }],
    });
    cluster.apply(&registration.to_string()).await.unwrap();
    cluster.apply(RULES).await.unwrap();
    cluster.wait_for_namespace("strict").await.unwrap();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p},
                spec: {containers: [{name: a, image: example.com/a}]}}";
    // The API server learns of the registration and of the limits a moment after they are made.
    let ask = || async {
        cluster.kubectl(&["delete", "pod", "p", "--ignore-not-found", "--now"], "").await?;
        cluster.apply(pod).await?;
        let spec = webhook.last().context("it was not asked")?["request"]["object"]["spec"].take();
        anyhow::ensure!(spec["containers"][0]["resources"]["limits"]["cpu"] == "100m", "{spec}");
        Ok(spec)
    };
    let spec = eventually("the webhook", SOON, ask).await.unwrap();
    assert_eq!(spec["serviceAccountName"], "default", "{spec}");
    let refused = cluster.kubectl(&["-n", "strict", "apply", "-f", "-"], pod).await.unwrap_err();
    assert!(refused.to_string().contains("PodSecurity"), "{refused}");
}
