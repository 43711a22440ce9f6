//! The commands, run as a user runs them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use aether::cli::Cli;
use clap::CommandFactory;
use serde_json::Value;

const WORLD: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: shop, labels: { aether.io/managed: "true" } }
spec: { containers: [{ name: web, image: web }] }
status: { phase: Running, podIP: 10.244.0.9, podIPs: [{ ip: 10.244.0.9 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: bare, namespace: shop }
spec: { containers: [{ name: bare, image: bare }] }
---
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop, labels: { aether.io/mesh-service: "true" } }
spec:
  clusterIP: 10.96.0.7
  clusterIPs: [10.96.0.7]
  ports:
    - { name: http, port: 80, protocol: TCP, appProtocol: http }
    - { name: db, port: 5432, protocol: TCP, appProtocol: postgres }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: cart-1, namespace: shop, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports:
  - { name: http, port: 8080, protocol: TCP }
  - { name: db, port: 5432, protocol: TCP }
endpoints:
  - { addresses: [10.244.0.7], conditions: { ready: true } }
"#;

/// A Service whose mesh name cannot be used.
const BROKEN: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: pay
  namespace: shop
  labels: { aether.io/mesh-service: "true" }
  annotations: { aether.io/service: "Pay.Me" }
spec: { clusterIP: 10.96.0.8, ports: [{ port: 80 }] }
"#;

fn world(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn aether(line: &str, folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aether"));
    command.args(line.split_whitespace()).arg("--manifests").arg(folder);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AETHER_")) {
        command.env_remove(name);
    }
    command.output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn names(list: &Value, field: &str) -> BTreeSet<String> {
    let name = |one: &Value| one[field].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

/// A command with no more than it needs to be refused, or to find nothing, and this variable. Its
/// exit status, and how it ends.
fn with_variable(command: &str, variable: Option<(&str, &str)>) -> (Option<i32>, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_aether"));
    process.arg(command);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AETHER_")) {
        process.env_remove(name);
    }
    process.env("AETHER_MANIFESTS", "/nowhere").env("AETHER_NODE", "pod/shop/web");
    // Without a folder it looks for an API server, which is to be found nowhere either.
    process.env("HOME", "/nowhere").env("KUBECONFIG", "/nowhere/config");
    process.env_remove("KUBERNETES_SERVICE_HOST");
    process.envs(variable);
    let output = process.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    (output.status.code(), format!("{stdout}{}", told.lines().last().unwrap_or_default()))
}

/// Every option of every command that is a variable too: the command, the variable, and whether it
/// is one that is on or off.
fn variables() -> Vec<(String, String, bool)> {
    let mut all = Vec::new();
    for command in Cli::command().get_subcommands() {
        for option in command.get_arguments() {
            let Some(variable) = option.get_env() else { continue };
            let switch = !option.get_action().takes_values();
            let variable = variable.to_str().unwrap().to_owned();
            all.push((command.get_name().to_owned(), variable, switch));
        }
    }
    assert!(all.len() > 25, "{all:?}");
    all
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    // These two are set for all; without them the commands say that they need them.
    let needed = ["AETHER_MANIFESTS", "AETHER_NODE"];
    for (command, variable, _) in variables() {
        let (code, told) = with_variable(&command, Some((&variable, "")));
        if needed.contains(&variable.as_str()) {
            assert!(!told.contains("\"/nowhere\"") && !told.contains("invalid value"), "{told}");
            assert_ne!(code, Some(0), "{command} {variable}: {told}");
        } else {
            assert_eq!((code, told), with_variable(&command, None), "{command} {variable}");
        }
    }
    // On the command line an empty value is a value.
    let folder = world(&[]);
    let output = aether("check --mesh-domain=", folder.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn an_option_that_is_on_or_off_says_which_words_count() {
    let switches: Vec<_> = variables().into_iter().filter(|(_, _, switch)| *switch).collect();
    assert!(switches.len() >= 3, "{switches:?}");
    for (command, variable, _) in switches {
        let (code, told) = with_variable(&command, Some((&variable, "maybe")));
        assert_eq!(code, Some(2), "{command} {variable}: {told}");
        let mut process = Command::new(env!("CARGO_BIN_EXE_aether"));
        let output = process.arg(&command).env(&variable, "maybe").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let expected = "write true, yes, on or 1; or false, no, off or 0";
        assert!(told.contains(expected) && told.contains("maybe"), "{command} {variable}: {told}");
    }
}

#[test]
fn a_full_disk_is_said_to_be_that_of_stdout() {
    let folder = world(&[("world.yaml", WORLD), ("pay.yaml", BROKEN)]);
    let lines = [
        ("render --node pod/shop/web", 1),
        ("render --node pod/shop/web --bootstrap", 1),
        ("check", 2),
        ("check --json", 2),
    ];
    let manifests = folder.path().to_str().unwrap();
    let lines = lines.map(|(line, code)| (format!("{line} --manifests {manifests}"), code));
    for (line, code) in lines.into_iter().chain([("bootstrap --node pod/shop/web".to_owned(), 1)]) {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aether"));
        let output = command.args(line.split(' ')).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        assert!(told.starts_with("aether: stdout: No space left"), "{line}: {told}");
        assert_eq!(told.lines().count(), 1, "{line}: {told}");
    }
}

#[test]
fn render_shows_all_that_a_node_gets() {
    let folder = world(&[("world.yaml", WORLD)]);
    for options in ["", "--capture-mode scoped", "--dns-filter --dns-upstream 10.96.0.10"] {
        let line = format!("render --node pod/shop/web {options}");
        let json = json(&aether(&line, folder.path()));
        let listeners = names(&json["listeners"], "name");
        assert!(listeners.contains("capture_shop_web"), "{listeners:?}");
        assert_eq!(listeners.contains("dns_shop_web"), options.contains("--dns-filter"));
        assert_eq!(names(&json["routes"], "name"), BTreeSet::from(["cap_http.shop".to_owned()]));
        let hosts = names(&json["routes"][0]["virtual_hosts"], "name");
        let expected = ["cap_http.shop/any", "cap_http.shop/cart.shop"].map(str::to_owned);
        assert_eq!(hosts, BTreeSet::from(expected), "{options}");
        // Nothing dangles: each cluster that takes endpoints has them.
        let endpoints = names(&json["endpoints"], "cluster_name");
        let clusters = json["clusters"].as_array().unwrap().iter();
        let asked = clusters.filter_map(|c| c["eds_cluster_config"]["service_name"].as_str());
        let asked: BTreeSet<_> = asked.map(str::to_owned).collect();
        assert_eq!(asked, endpoints, "{options}");
        assert!(json.to_string().contains("10.244.0.7"), "{options}");
    }
}

#[test]
fn render_is_the_same_every_time() {
    let folder = world(&[("world.yaml", WORLD)]);
    let render = || aether("render --node pod/shop/web --dns-filter", folder.path()).stdout;
    assert_eq!(render(), render());
}

#[test]
fn a_static_bootstrap_needs_no_server() {
    let folder = world(&[("world.yaml", WORLD)]);
    let json = json(&aether("render --node pod/shop/web --bootstrap", folder.path()));
    assert_eq!(json.get("dynamic_resources"), None);
    let text = json.to_string();
    for word in ["\"ads\"", "\"rds\"", "eds_cluster_config", "\"EDS\""] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(text.contains("cap_http.shop/cart.shop") && text.contains("10.244.0.7"));
}

#[test]
fn a_pod_that_waits_costs_exit_1_and_says_why() {
    let folder = world(&[("world.yaml", WORLD)]);
    for (pod, why) in [("bare", "not managed"), ("wev", "did you mean pod/shop/web?")] {
        let output = aether(&format!("render --node pod/shop/{pod}"), folder.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why), "{told}");
        assert!(output.stdout.is_empty());
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn check_exits_with_what_it_found() {
    let folder = world(&[("world.yaml", WORLD)]);
    let output = aether("check", folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let folder = world(&[("world.yaml", WORLD), ("pay.yaml", BROKEN)]);
    let output = aether("check", folder.path());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().next().unwrap();
    for word in ["problem", "Service shop/pay", "pay.yaml", "aether.io/service", "Pay.Me"] {
        assert!(line.contains(word), "{word} in {line}");
    }
    let output = aether("check --json", folder.path());
    let first: Value =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().next().unwrap().unwrap();
    assert_eq!((&first["name"], &first["severity"]), (&"pay".into(), &"problem".into()));

    let output = aether("check", &folder.path().join("nowhere"));
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("aether: ") && told.contains("nowhere"), "{told}");
}

#[test]
fn check_tells_what_every_name_resolves_to_and_who_answers() {
    let folder = world(&[("world.yaml", WORLD)]);
    let lines = |options: &str| {
        let output = aether(&format!("check --names {options}"), folder.path());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = lines("");
    for name in ["cart.shop.aether.internal", "cart.aether.internal"] {
        let line = format!("name {name}: 10.96.0.7 (Service shop/cart, answered by mesh-dns)");
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
    assert!(lines("--dns-filter --json").contains(r#""answeredBy":"dns_filter""#));
}

#[test]
fn warnings_alone_are_no_failure() {
    let label = "{ name: shop, labels: { aether.io/managed: \"true\" } }";
    let text = WORLD.replace("{ name: shop }", label);
    let folder = world(&[("world.yaml", &text)]);
    let output = aether("check", folder.path());
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.starts_with("warning") && told.contains("Pod shop/bare"), "{told}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn without_any_source_the_ways_out_are_named() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_aether"));
    command.arg("check").env("HOME", home.path());
    let of_clusters = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
    of_clusters.iter().for_each(|name| drop(command.env_remove(name)));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AETHER_")) {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    for word in ["no Kubernetes API server", "--kubeconfig FILE", "KUBECONFIG", "--manifests DIR"] {
        assert!(told.contains(word), "{word} in {told}");
    }
    assert_eq!(told.lines().count(), 1, "{told}");
}
