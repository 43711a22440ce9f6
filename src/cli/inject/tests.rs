#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    inject: Inject,
}

/// Output, log, and whether a pod was denied.
fn inject(options: &str, text: &str) -> Result<(String, String, bool)> {
    let line = ["inject", "-f", "apps.yaml"].into_iter().chain(options.split_whitespace());
    let inject = Line::try_parse_from(line).unwrap().inject;
    let settings = inject.injection.settings(inject.mesh.settings(Vec::new())?)?;
    let (mut out, mut log) = (Vec::new(), Vec::new());
    let denied = inject.inject(text, &settings, &mut out, &mut log)?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(log).unwrap(), denied))
}

const GATE: &str = "--identity-gate-image aether:1";

const DEPLOYMENT: &str = r##"# the shop's front
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
  template:
    metadata:
      labels:
        zone: "on"
        aether.io/managed: "true"
        app: web
    spec:
      futureField: {b: 1, a: [2, 1.50]}
      containers:
      - name: web
        image: "web:1"
        args: ["--port=0777", "yes", "12:30:45", "1e3", "null", "~", "- x", "a: b", "#no", "\ttab\n", "é\u0007"]
        env:
        - name: SCRIPT
          value: |
            #!/bin/sh
            echo 1
        - {name: EMPTY, value: ""}
"##;

#[test]
fn a_deployment_comes_out_in_its_own_form_and_order() {
    let (out, log, denied) = inject(GATE, DEPLOYMENT).unwrap();
    assert!(!denied && log.is_empty(), "{log}");
    let value: Value = serde_saphyr::from_str(&out).unwrap();
    let template = &value["spec"]["template"];
    assert_eq!(template["spec"]["initContainers"][0]["name"], "aether-identity-ready");
    // What was there reads as before, and stands in the order that it had.
    let before: Value = serde_saphyr::from_str(DEPLOYMENT).unwrap();
    assert_eq!(template["spec"]["containers"], before["spec"]["template"]["spec"]["containers"]);
    assert_eq!(template["spec"]["futureField"], json!({ "b": 1, "a": [2, 1.5] }));
    let order = [
        "apiVersion:",
        "kind:",
        "metadata:",
        "replicas:",
        "zone:",
        "aether.io/managed:",
        "app:",
        "futureField:",
        " b:",
        " a:",
        "containers:",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|key| out.find(key).unwrap_or_else(|| panic!("{key} in\n{out}")))
        .collect();
    assert!(places.is_sorted(), "{out}");
    // Texts that YAML 1.1 would read as something else are quoted.
    for text in ["on", "0777", "yes", "12:30:45", "1e3", "null", "~"] {
        assert!(
            !out.lines().any(|line| line.trim_start_matches([' ', '-']).trim() == text),
            "{text} in\n{out}"
        );
    }
    // Once more: nothing to do, to the letter.
    assert_eq!(inject(GATE, &out).unwrap().0, out);
}

#[test]
fn json_stays_json() {
    let pod = r#"{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": []}, "metadata": {"labels": {"aether.io/managed": "true"}, "name": "a"}}"#;
    let (out, _, _) = inject("", pod).unwrap();
    assert!(out.starts_with('{') && out.find("\"kind\"") < out.find("\"apiVersion\""), "{out}");
    assert!(out.find("\"spec\"") < out.find("\"metadata\""), "{out}");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["spec"]["dnsConfig"]["options"].as_array().unwrap().len(), 3);
    // Several, one after the other.
    let (out, _, _) = inject("", &format!("{pod}\n{{\"kind\": \"Other\"}}\n")).unwrap();
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&out).into_iter().map(Result::unwrap).collect();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[1], json!({ "kind": "Other" }));
}

#[test]
fn what_does_not_change_comes_out_to_the_letter() {
    let text = "# first\n---\nkind:   Service\napiVersion: v1\n# why\n...\n# end\n";
    assert_eq!(inject(GATE, text).unwrap().0, text);
    // Beside one that does, each document keeps its text, comments and all.
    let service = "apiVersion: v1\nkind:   Service   # why\n";
    let (out, _, _) = inject(GATE, &format!("{service}---\n{DEPLOYMENT}---\n{service}")).unwrap();
    assert_eq!(out.matches(service).count(), 2, "{out}");
    assert_eq!(out.matches("---\n").count(), 2, "{out}");
    assert!(out.starts_with(service) && out.ends_with(service), "{out}");
}

#[test]
fn lists_and_namespaces_of_the_file_count() {
    let list = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {aether.io/managed: "true"}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: pay}}
- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {containers: []}}
- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: pay}, spec: {containers: []}}
- {apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: []}}
- apiVersion: v1
  kind: PodList
  items: [{metadata: {name: d, namespace: shop}, spec: {containers: []}}]
"#;
    let injected = |options: &str| -> Vec<String> {
        let (out, _, _) = inject(options, list).unwrap();
        let value: Value = serde_saphyr::from_str(&out).unwrap();
        let mut items = value["items"].as_array().unwrap().clone();
        let inner = items[5]["items"][0].clone();
        items[5] = inner;
        let managed = |item: &&Value| item["spec"].get("dnsConfig").is_some();
        items
            .iter()
            .filter(managed)
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(injected(""), ["a", "d"]);
    assert_eq!(injected("--namespace shop"), ["a", "c", "d"]);
    assert_eq!(injected("--namespace-labels aether.io/managed=true,x=y"), ["a", "b", "c", "d"]);
    assert_eq!(injected("--namespace-labels aether.io/managed=false"), [""; 0]);
    assert_eq!(
        injected(
            "--namespace-labels aether.io/managed=true --excluded-namespaces pay --namespace kube-system"
        ),
        ["a", "d"]
    );
}

#[test]
fn the_operations_alone_are_a_json_patch_of_the_document() {
    let (out, _, _) = inject("--diff", DEPLOYMENT).unwrap();
    let patch: json_patch::Patch = serde_json::from_str(&out).unwrap();
    let mut value: Value = serde_saphyr::from_str(DEPLOYMENT).unwrap();
    json_patch::patch(&mut value, &patch.0).unwrap();
    let (whole, _, _) = inject("", DEPLOYMENT).unwrap();
    assert_eq!(value, serde_saphyr::from_str::<Value>(&whole).unwrap());
    assert_eq!(inject("--diff", "kind: Service\napiVersion: v1\n").unwrap().0, "[]\n");
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}",
        DEPLOYMENT.replace("# the shop's front\n", "").trim_end().replace('\n', "\n  ")
    );
    let (out, _, _) = inject("--diff", &list).unwrap();
    assert!(out.contains("\"/items/0/spec/template/spec/dnsConfig\""), "{out}");
    // Of several documents it says which.
    let (out, _, _) = inject(
        "--diff",
        &format!("{DEPLOYMENT}---\nkind: Service\napiVersion: v1\nmetadata: {{name: s}}\n"),
    )
    .unwrap();
    assert!(
        out.contains("# document 1: Deployment shop/web")
            && out.contains("# document 2: Service default/s"),
        "{out}"
    );
}

#[test]
fn a_denial_prints_nothing_but_why() {
    let denied = DEPLOYMENT.replace(
        "      containers:",
        "      volumes: [{name: s, csi: {driver: csi.aether.io}}]\n      containers:",
    );
    let (out, log, is_denied) =
        inject(GATE, &format!("{DEPLOYMENT}---\n{denied}---\n{denied}")).unwrap();
    assert!(is_denied && out.is_empty(), "{out}");
    assert_eq!(log.matches("denied: Deployment shop/web cannot").count(), 2, "{log}");
}

#[test]
fn who_gets_less_is_told_on_the_side() {
    let host =
        DEPLOYMENT.replace("      containers:", "      hostNetwork: true\n      containers:");
    let (_, log, _) = inject(GATE, &host).unwrap();
    assert!(
        log.contains("warning: Deployment shop/web: aether: ") && log.lines().count() == 2,
        "{log}"
    );
}

#[test]
fn what_cannot_be_read_names_file_document_and_field() {
    let broken = inject("", "a: 1\n---\nb: [\n").unwrap_err();
    let broken = format!("{broken:#}");
    assert!(broken.contains("apps.yaml: document 2"), "{broken}");
    let wrong = DEPLOYMENT.replace("zone: \"on\"", "zone: 7");
    let wrong = format!("{:#}", inject("", &wrong).unwrap_err());
    for part in ["apps.yaml", "Deployment shop/web", "metadata.labels", "zone: 7"] {
        assert!(wrong.contains(part), "{wrong}");
    }
    assert!(inject("", "{\"kind\": \"Pod\"} {").is_err());
    assert_eq!(inject("", "").unwrap().0, "");
}

#[test]
fn the_gates_options_are_checked_together() {
    let line = "--identity-gate-image A --identity-gate-socket x --identity-gate-user 0";
    let error = inject(line, DEPLOYMENT).unwrap_err().to_string();
    for part in ["--identity-gate-image", "--identity-gate-socket", "--identity-gate-user"] {
        assert!(error.contains(part), "{error}");
    }
    let error = inject("--identity-gate", DEPLOYMENT).unwrap_err().to_string();
    assert!(error.contains("--identity-gate-image"), "{error}");
    // Switched off, it may be set to anything.
    let (out, _, _) = inject("--identity-gate=false --identity-gate-image A", DEPLOYMENT).unwrap();
    assert!(!out.contains("aether-identity-ready") && out.contains("ndots"), "{out}");
    let (out, _, _) = inject("--inject-pod-ndots=false --identity-gate=off", DEPLOYMENT).unwrap();
    assert_eq!(out, DEPLOYMENT);
}

/// Whatever a text holds, what is written reads as what was meant.
#[test]
fn odd_texts_survive() {
    use proptest::prelude::*;
    proptest!(|(texts in proptest::collection::vec("(\\PC|[\\n\\t :#'\"-]){0,24}", 0..6), key in "[ -~]{1,12}")| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "labels": { "aether.io/managed": "true" }, "annotations": { &key: texts.join("|") } },
            "spec": { "containers": [{ "name": "web", "args": texts }] },
        });
        prop_assume!(!key.starts_with("aether.io"));
        let yaml = serde_saphyr::to_string(&pod).unwrap();
        if let Ok(read) = serde_saphyr::from_str::<Value>(&yaml) {
            prop_assume!(read == pod);
            let (out, _, _) = inject("", &yaml).unwrap();
            let mut after: Value = serde_saphyr::from_str(&out).unwrap();
            after["spec"].as_object_mut().unwrap().remove("dnsConfig");
            prop_assert_eq!(after, pod);
        }
    });
}
