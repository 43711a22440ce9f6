//! `aether render` for the proxy of a node, by the network namespaces that are pinned in a folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const WORLD: &str = r#"
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: shop, uid: uid-1, labels: { aether.io/managed: "true" } }
spec: { nodeName: worker-1, containers: [{ name: web, image: web }] }
status: { phase: Running, podIP: 10.244.0.9, podIPs: [{ ip: 10.244.0.9 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: far, namespace: shop, uid: uid-2, labels: { aether.io/managed: "true" } }
spec: { nodeName: worker-2, containers: [{ name: web, image: web }] }
"#;

/// What it prints, or why it does not.
fn render(node: &str, pins: &Path, manifests: &Path) -> Result<Value, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aether"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AETHER_")) {
        command.env_remove(name);
    }
    command.args(["render", "--node", node, "--netns-dir"]).arg(pins);
    let output = command.arg("--manifests").arg(manifests).output().unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    assert_eq!(output.status.code(), Some(1));
    Err(String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_node_gets_what_its_pinned_pods_get() {
    let manifests = tempfile::tempdir().unwrap();
    std::fs::write(manifests.path().join("world.yaml"), WORLD).unwrap();
    let pins = tempfile::tempdir().unwrap();
    let of = |node: &str| render(node, pins.path(), manifests.path());
    let listeners = |node: &str| of(node).unwrap()["listeners"].as_array().unwrap().clone();
    // Known, and without any pod.
    assert!(listeners("node/worker-1").is_empty());
    for uid in ["uid-1", "uid-2", "uid-of-a-stranger"] {
        symlink("/proc/self/ns/net", pins.path().join(uid)).unwrap();
    }
    for (node, pod, uid) in [("node/worker-1", "web", "uid-1"), ("node/worker-2", "far", "uid-2")] {
        let [listener] = listeners(node).try_into().unwrap();
        assert_eq!(listener["name"], format!("capture_shop_{pod}"));
        let address = &listener["address"]["socket_address"];
        let path = pins.path().join(uid).display().to_string();
        assert_eq!(address["network_namespace_filepath"], path);
    }
    // A sidecar's listeners are where it runs, whatever is pinned.
    let own = &of("pod/shop/web").unwrap()["listeners"][0]["address"]["socket_address"];
    assert_eq!(own["network_namespace_filepath"], Value::Null);
    let told = of("node/worker-3").unwrap_err();
    for words in ["no node \"worker-3\" is known", "node/worker-1", "node/worker-2"] {
        assert!(told.contains(words), "{told}");
    }
    let nowhere = render("node/worker-1", &pins.path().join("none"), manifests.path());
    let told = nowhere.unwrap_err();
    assert!(told.contains("waits") && told.contains("--netns-dir"), "{told}");
}
