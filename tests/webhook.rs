//! The webhook's registration as it stands in `charts/manifests`, field by field, and what of it
//! must agree with the program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use aether::admission::Entry;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use serde_json::{Value, json};

fn documents() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/manifests/webhook.yaml");
    serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn configuration() -> MutatingWebhookConfiguration {
    serde_json::from_value(documents().remove(0)).unwrap()
}

/// The entries, by name.
fn entries() -> BTreeMap<String, MutatingWebhook> {
    let entries = configuration().webhooks.unwrap();
    entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect()
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values),
    }
}

/// The namespaces that are never touched, with the default of `--excluded-namespaces` and the
/// namespace of the manifests.
fn never() -> LabelSelectorRequirement {
    requirement(
        "kubernetes.io/metadata.name",
        "NotIn",
        &[
            "kube-system",
            "kube-public",
            "kube-node-lease",
            "aether-system",
            "spire-system",
            "spire-server",
            "spire-mgmt",
        ],
    )
}

#[test]
fn the_manifest_holds_nothing_that_kubernetes_would_not_know() {
    // What a typed reader drops, the API server's validation refuses.
    let [configuration, service] = &documents()[..] else { panic!() };
    let typed: MutatingWebhookConfiguration =
        serde_json::from_value(configuration.clone()).unwrap();
    let mut read = serde_json::to_value(typed).unwrap();
    assert_eq!(read["webhooks"][0]["name"], "pods.aether.io");
    read["apiVersion"] = json!("admissionregistration.k8s.io/v1");
    read["kind"] = json!("MutatingWebhookConfiguration");
    assert_eq!(read, *configuration);
    let typed: Service = serde_json::from_value(service.clone()).unwrap();
    let mut read = serde_json::to_value(typed).unwrap();
    read["apiVersion"] = json!("v1");
    read["kind"] = json!("Service");
    assert_eq!(read, *service);
}

#[test]
fn both_entries_ask_for_the_creation_of_pods_and_nothing_else() {
    let entries = entries();
    assert_eq!(entries.len(), 2);
    for entry in entries.values() {
        let rules = serde_json::to_value(entry.rules.as_ref().unwrap()).unwrap();
        let expected = json!([{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"], "scope": "Namespaced",
        }]);
        assert_eq!(rules, expected, "{}", entry.name);
        assert_eq!(entry.admission_review_versions, ["v1"]);
        assert_eq!(entry.side_effects, "None");
        assert_eq!(entry.match_policy.as_deref(), Some("Equivalent"));
        assert_eq!(entry.reinvocation_policy.as_deref(), Some("IfNeeded"));
        assert_eq!(entry.timeout_seconds, Some(5));
        assert_eq!(entry.failure_policy.as_deref(), Some("Ignore"));
        // It has one writer, and that is not this file.
        assert_eq!(entry.client_config.ca_bundle, None);
        assert_eq!(entry.client_config.url, None);
    }
}

#[test]
fn each_entry_calls_the_path_that_says_what_it_is() {
    let entries = entries();
    for (name, entry) in
        [("pods.aether.io", Entry::Pod), ("namespaces.aether.io", Entry::Namespace)]
    {
        let service = entries[name].client_config.service.as_ref().unwrap();
        assert_eq!(service.path.as_deref(), Some(entry.path()), "{name}");
        assert_eq!((&*service.name, &*service.namespace), ("aether-webhook", "aether-system"));
        assert_eq!(service.port, Some(443));
    }
    let service: Service = serde_json::from_value(documents().remove(1)).unwrap();
    assert_eq!(service.metadata.name.as_deref(), Some("aether-webhook"));
    assert_eq!(service.metadata.namespace.as_deref(), Some("aether-system"));
    let ports = service.spec.unwrap().ports.unwrap();
    assert_eq!(ports[0].port, 443);
    assert_eq!(serde_json::to_value(&ports[0].target_port).unwrap(), json!(9443));
}

#[test]
fn the_pods_entry_matches_the_pods_own_label_where_the_namespace_has_none() {
    let entry = &entries()["pods.aether.io"];
    let selector = entry.object_selector.as_ref().unwrap();
    let own = requirement("aether.io/managed", "In", &["true"]);
    assert_eq!(selector.match_expressions, Some(vec![own]));
    assert_eq!(selector.match_labels, None);
    let selector = entry.namespace_selector.as_ref().unwrap();
    let none = requirement("aether.io/managed", "NotIn", &["true"]);
    assert_eq!(selector.match_expressions, Some(vec![none, never()]));
    assert_eq!(entry.match_conditions, None);
}

#[test]
fn the_namespaces_entry_matches_what_did_not_opt_out() {
    let entry = &entries()["namespaces.aether.io"];
    assert_eq!(entry.object_selector, None);
    let selector = entry.namespace_selector.as_ref().unwrap();
    let managed = requirement("aether.io/managed", "In", &["true"]);
    assert_eq!(selector.match_expressions, Some(vec![managed, never()]));
    let conditions = entry.match_conditions.as_ref().unwrap();
    assert_eq!(conditions.len(), 1);
    assert_eq!(
        conditions[0].expression,
        "!has(object.metadata.labels) || !('aether.io/managed' in object.metadata.labels) || \
         object.metadata.labels['aether.io/managed'] == 'true'"
    );
}

/// Runs `aether inject -f -` on a text.
fn inject(options: &[&str], text: &str) -> std::process::Output {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_aether"))
        .args(["inject", "-f", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn inject_reads_the_standard_input_and_exits_with_what_it_found() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}\n";
    let managed = ["--namespace-labels", "aether.io/managed=true"];
    let done = inject(&managed, pod);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("ndots") && done.stderr.is_empty());

    let denied = pod.replace(
        "containers: []",
        "containers: [], volumes: [{name: s, csi: {driver: csi.aether.io}}]",
    );
    let done = inject(&managed, &denied);
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("Pod default/web") && said.contains("fsGroup"), "{said}");
    assert!(done.stdout.is_empty());
    // Without the label nobody asks.
    assert_eq!(inject(&[], &denied).stdout, denied.as_bytes());

    assert_eq!(inject(&[], "a: [").status.code(), Some(1));
    let wrong = inject(&["--identity-gate-image", "A"], pod);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}
