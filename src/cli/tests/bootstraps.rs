//! What `bootstrap` prints.

use prost::Message;
use serde_json::Value;

use super::*;
use crate::descriptors;

fn bootstrap(line: &str) -> Value {
    let Command::Bootstrap(command) = parse(line).unwrap().command else { panic!() };
    let bytes = command.bootstrap().unwrap().encode_to_vec();
    descriptors::to_json("envoy.config.bootstrap.v3.Bootstrap", &bytes).unwrap()
}

#[test]
fn the_files_in_envoy_are_what_bootstrap_prints() {
    let table = [
        ("sidecar-delta-unix", "pod/shop/web", ""),
        ("sidecar-delta-tcp", "pod/shop/web", "--xds-address 127.0.0.1:18000"),
        ("sidecar-sotw-unix", "pod/shop/web", "--protocol sotw"),
        ("sidecar-sotw-tcp", "pod/shop/web", "--xds-address 127.0.0.1:18000 --protocol sotw"),
        ("node-delta-unix", "node/worker-1", ""),
        ("node-delta-tcp", "node/worker-1", "--xds-address 127.0.0.1:18000"),
    ];
    for (name, node, options) in table {
        let path = format!("{}/envoy/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let command = format!("aether bootstrap --node {node} {options}");
        assert!(text.contains(&format!("#   {}\n", command.trim())), "{path}: {command}");
        let file: Value = serde_saphyr::from_str(&text).unwrap();
        let line = command.trim_start_matches("aether ");
        assert_eq!(file, bootstrap(line), "{path}");
    }
}

#[test]
fn a_server_by_name_is_resolved_by_envoy() {
    let json = bootstrap("bootstrap --node pod/shop/web --xds-address aether.mesh.svc:18000");
    let cluster = &json["static_resources"]["clusters"][0];
    assert_eq!(cluster["type"], "STRICT_DNS");
    let address = &cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"];
    assert_eq!(address["address"]["socket_address"]["address"], "aether.mesh.svc");
}

#[test]
fn a_bootstrap_with_tls_follows_files_and_expects_the_server() {
    let files = "--xds-client-cert /id/tls.crt --xds-client-key /id/tls.key \
                 --xds-server-ca /id/ca.crt --xds-secrets-folder /run/secrets";
    let socket = |options: &str| {
        let line = format!("bootstrap --node pod/shop/web {files} {options}");
        bootstrap(&line)["static_resources"]["clusters"][0]["transport_socket"].clone()
    };
    let tls = socket("--xds-address aether.mesh.svc:18000");
    assert_eq!(tls["name"], "envoy.transport_sockets.tls");
    let config = &tls["typed_config"];
    assert_eq!(config["sni"], "aether.mesh.svc");
    let common = &config["common_tls_context"];
    assert_eq!(common["alpn_protocols"], serde_json::json!(["h2"]));
    let sds = &common["tls_certificate_sds_secret_configs"][0];
    let path = &sds["sds_config"]["path_config_source"]["path"];
    assert_eq!(path, "/run/secrets/xds_certificate.json");
    let expected = |tls: &Value| {
        let context = &tls["typed_config"]["common_tls_context"]["combined_validation_context"];
        let names = &context["default_validation_context"]["match_typed_subject_alt_names"];
        (names[0]["san_type"].clone(), names[0]["matcher"]["exact"].clone())
    };
    assert_eq!(expected(&tls), ("DNS".into(), "aether.mesh.svc".into()));
    let ip = socket("--xds-address [fd00::1]:18000");
    assert_eq!(expected(&ip), ("IP_ADDRESS".into(), "fd00::1".into()));
    let id = socket("--xds-address 10.0.0.1:1 --xds-server-id spiffe://td/ns/mesh/sa/aether");
    assert_eq!(expected(&id), ("URI".into(), "spiffe://td/ns/mesh/sa/aether".into()));
    for wrong in [
        "--xds-address 10.0.0.1:1 --xds-client-cert /a",
        "--xds-address 10.0.0.1:1 --xds-server-id spiffe://td/a",
        &format!("--xds-socket /run/x.sock {files}"),
        &format!("--xds-address 10.0.0.1:1 {}", files.replace("/id/tls.key", "/other/tls.key")),
        &format!("--xds-address 10.0.0.1:1 {}", files.replace("/id/ca.crt", "ca.crt")),
    ] {
        let line = format!("bootstrap --node pod/shop/web {wrong}");
        let Command::Bootstrap(command) = parse(&line).unwrap().command else { panic!() };
        assert!(command.bootstrap().unwrap_err().to_string().contains("--xds-"), "{line}");
    }
}

#[test]
fn admin_can_be_elsewhere_or_off() {
    let json = bootstrap("bootstrap --node pod/shop/web --admin-socket /run/a.sock");
    assert_eq!(json["admin"]["address"]["pipe"]["path"], "/run/a.sock");
    // Of Linux, and no file.
    let json = bootstrap("bootstrap --node pod/shop/web --admin-socket @envoy");
    assert_eq!(json["admin"]["address"]["pipe"]["path"], "@envoy");
    let json = bootstrap("bootstrap --node pod/shop/web --admin-socket none");
    assert_eq!(json.get("admin"), None);
}

/// One environment serves `serve`, which listens on both, and `bootstrap`, which takes one.
#[test]
fn a_bootstrap_takes_the_socket_where_there_is_an_address_too() {
    let both = "bootstrap --node pod/shop/web --xds-address 0.0.0.0:18000 --xds-socket /b";
    assert!(bootstrap(both).to_string().contains("\"path\":\"/b\""));
    let none = bootstrap("bootstrap --node pod/shop/web --xds-address none").to_string();
    assert!(none.contains("\"path\":\"/run/aether/xds.sock\""), "{none}");
    let wrong = [
        "--xds-address 0.0.0.0:18000",
        "--xds-address none --xds-socket none",
        // Where the server may have one, Envoy looks from a folder of its own.
        "--xds-socket run/xds.sock",
    ];
    for wrong in wrong {
        let line = format!("bootstrap --node pod/shop/web {wrong}");
        let Command::Bootstrap(command) = parse(&line).unwrap().command else { panic!() };
        assert!(command.bootstrap().unwrap_err().to_string().contains("--xds-"), "{line}");
    }
}
