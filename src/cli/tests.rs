#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bootstraps;

use clap::CommandFactory;

use super::serve::XdsSocket;
use super::*;
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
#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
    assert!(is_broken_pipe(&anyhow::Error::from(broken()).context("stdout")));
    assert!(is_broken_pipe(&serde_json::Error::io(broken()).into()));
    assert!(!is_broken_pipe(&io::Error::from(io::ErrorKind::NotFound).into()));
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
