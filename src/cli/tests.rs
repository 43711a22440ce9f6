#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use clap::CommandFactory;
use prost::Message;
use serde_json::Value;

use super::serve::XdsSocket;
use super::*;
use crate::descriptors;
use crate::translate::CaptureMode;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("aether").chain(line.split_whitespace()))
}

fn serve(line: &str) -> Result<serve::Options> {
    match parse(&format!("serve --manifests . {line}")).unwrap().command {
        Command::Serve(serve) => serve.options(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definitions_hold_together() {
    Cli::command().debug_assert();
}

#[test]
fn every_option_is_an_environment_variable_of_its_name() {
    for command in Cli::command().get_subcommands() {
        let options = command.get_arguments().filter(|option| {
            if option.is_positional() {
                return false;
            }
            let id = option.get_id().as_str();
            // What only chooses the form of a result stands on the command line alone.
            !matches!(id, "help" | "version" | "json" | "bootstrap" | "names" | "diff")
        });
        for option in options {
            let name = option.get_long().unwrap().replace('-', "_").to_uppercase();
            let env = option.get_env().unwrap_or_else(|| panic!("{name} has none"));
            assert_eq!(env.to_str(), Some(format!("AETHER_{name}").as_str()));
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let options = serve("").unwrap();
    assert_eq!(options.xds_address, Some("127.0.0.1:18000".parse().unwrap()));
    assert_eq!(options.xds_socket, XdsSocket::IfPossible("/run/aether/xds.sock".into()));
    assert_eq!(options.pins, Some("/run/aether/netns".into()));
    assert_eq!(serve("--netns-dir none").unwrap().pins, None);
    let translate = options.translate;
    assert_eq!(translate.mode, CaptureMode::RedirectAll);
    assert_eq!(translate.names.domain(), "aether.internal");
    assert_eq!(translate.names.cluster_domain(), "cluster.local");
    assert!(translate.dns.is_none());
    let ports = [21, 22, 25, 110, 119, 143, 389, 514, 587, 2003, 3306, 4222, 5900, 9418];
    assert_eq!(translate.server_first_ports, ports);
    assert_eq!(options.index.server_first_ports, ports);
    for namespace in ["kube-system", "SPIRE-system", "spire-server", "spire-mgmt"] {
        assert!(options.index.never_touches(namespace), "{namespace}");
    }
    assert!(!options.index.never_touches("shop"));
}

#[test]
fn options_shape_what_they_name() {
    let line = "--mesh-domain Mesh.Example. --cluster-domain k8s.local --capture-mode scoped \
                --server-first-ports 3306,22 --dns-filter --dns-upstream 10.96.0.10 \
                --excluded-namespaces ops --own-namespace Aether-System";
    let options = serve(line).unwrap();
    let translate = options.translate;
    assert_eq!(translate.names.domain(), "mesh.example");
    assert_eq!(translate.names.cluster_domain(), "k8s.local");
    assert_eq!(translate.mode, CaptureMode::Scoped);
    assert_eq!(translate.server_first_ports, [22, 3306]);
    assert_eq!(translate.dns.unwrap().upstream, ["10.96.0.10:53".parse().unwrap()]);
    // Nothing is inspected in scoped mode, so no port is left out either.
    assert!(options.index.server_first_ports.is_empty());
    for (namespace, never) in [("ops", true), ("aether-system", true), ("spire-system", false)] {
        assert_eq!(options.index.never_touches(namespace), never, "{namespace}");
    }
}

#[test]
fn a_socket_that_was_asked_for_is_required() {
    let table = [
        ("--xds-socket /tmp/x", XdsSocket::Required("/tmp/x".into())),
        ("--xds-socket none", XdsSocket::Off),
        // Without TCP, the default one is all that there is.
        ("--xds-address none", XdsSocket::Required("/run/aether/xds.sock".into())),
    ];
    for (line, expected) in table {
        assert_eq!(serve(line).unwrap().xds_socket, expected, "{line}");
    }
    let error = serve("--xds-address none --xds-socket none").unwrap_err().to_string();
    assert!(error.contains("--xds-address") && error.contains("--xds-socket"), "{error}");
}

#[test]
fn wrong_values_are_refused_before_anything_starts() {
    for line in [
        "serve --xds-address 18000",
        "serve --capture-mode all",
        "serve --server-first-ports 0",
        "serve --dns-upstream 10.96.0.10",
        "serve --dns-filter --dns-upstream dns",
        "serve --excluded-namespaces a.b",
        "serve --log a=b=c",
        "serve --log-format xml",
        "render",
        "render --node shop/web",
        "bootstrap --node pod/shop/web --protocol rest",
        "bootstrap --node pod/shop/web --xds-address 18000",
        "bootstrap --node pod/shop/web --admin-socket admin.sock",
        "render --node pod/shop/web --admin-socket ./admin.sock",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for word in ["inof", "warning", "9", "info,nonsense"] {
        let line = format!("serve --log {word}");
        assert_eq!(parse(&line).unwrap_err().exit_code(), 2, "{line}");
    }
    for filter in ["warn", "OFF", "info,aether::xds=debug", "aether"] {
        assert!(parse(&format!("serve --log {filter}")).is_ok(), "{filter}");
    }
}

#[test]
fn of_two_domains_the_one_at_fault_is_named() {
    let table = [
        ("--mesh-domain a.svc", "--mesh-domain: the mesh domain \"a.svc\" ends"),
        ("--mesh-domain a", "--mesh-domain: the mesh domain \"a\" has one label"),
        ("--mesh-domain 0.1", "--mesh-domain: the mesh domain \"0.1\" ends in a number"),
        ("--mesh-domain a_b.c", "--mesh-domain: \"a_b.c\" is no DNS name"),
        ("--cluster-domain a_b.c", "--cluster-domain: \"a_b.c\" is no DNS name"),
        ("--mesh-domain a.cluster.local", "--mesh-domain and --cluster-domain: the mesh domain"),
    ];
    for (line, expected) in table {
        let error = format!("{:#}", serve(line).unwrap_err());
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let line = "check --kubeconfig /nowhere/config";
    let Command::Check(check) = parse(line).unwrap().command else { panic!() };
    let error = check.run().unwrap_err().to_string();
    assert!(error.contains("/nowhere/config") && error.contains("--kubeconfig"), "{error}");
}

#[test]
fn objects_come_from_one_source() {
    for line in ["--kubeconfig k", "--context c", "--kube-context c"] {
        assert_eq!(parse(&format!("check --manifests d {line}")).unwrap_err().exit_code(), 2);
        assert!(parse(&format!("check {line}")).is_ok(), "{line}");
    }
}

/// What `aether bootstrap` prints.
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

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
    assert!(is_broken_pipe(&anyhow::Error::from(broken()).context("stdout")));
    assert!(is_broken_pipe(&serde_json::Error::io(broken()).into()));
    assert!(!is_broken_pipe(&io::Error::from(io::ErrorKind::NotFound).into()));
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

#[test]
fn what_is_written_is_written_by_one() {
    let writing = serve("").unwrap().writing;
    let election = writing.election.unwrap();
    assert_eq!((election.lease.as_str(), election.namespace), ("aether", None));
    assert_eq!(election.settings, crate::leader::Settings::default());
    assert!(writing.generate);
    let line = "--own-namespace Aether-System --lease-name mesh --lease-duration 4s \
                --lease-renew-deadline 2s --lease-renew-interval 500ms --generate-services off";
    let writing = serve(line).unwrap().writing;
    let election = writing.election.unwrap();
    assert_eq!(election.lease, "mesh");
    assert_eq!(election.namespace.as_deref(), Some("aether-system"));
    assert_eq!(election.settings.interval, std::time::Duration::from_millis(500));
    assert!(!writing.generate);
    assert_eq!(serve("--leader-election false").unwrap().writing.election, None);
    for (line, word) in [
        ("--lease-duration 5s", "--lease-renew-deadline"),
        ("--lease-duration 1500ms", "whole number of seconds"),
        ("--lease-renew-interval 6s", "--lease-renew-interval"),
    ] {
        let error = format!("{:#}", serve(line).unwrap_err());
        assert!(error.contains(word), "{line}: {error}");
    }
    assert!(parse("serve --manifests . --lease-name a.b").is_err());
}
