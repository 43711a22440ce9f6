#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    access: Access,
}

fn options(line: &str, address: Option<&str>) -> Result<Options, String> {
    let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
    let line = line.map_err(|error| error.to_string())?;
    let address = address.map(|address| address.parse().unwrap());
    line.access.options(address).map_err(|error| format!("{error:#}"))
}

const TLS: &str = "--xds-tls-cert a --xds-tls-key b --xds-client-ca c";

#[test]
fn plain_tcp_is_for_this_machine_unless_it_is_said_otherwise() {
    for (line, address, words) in [
        ("", Some("127.0.0.1:18000"), None),
        ("", Some("127.1.2.3:18000"), None),
        ("", Some("[::1]:18000"), None),
        ("", Some("[::ffff:127.0.0.1]:18000"), None),
        ("", None, None),
        ("", Some("0.0.0.0:18000"), Some("--xds-insecure")),
        ("", Some("10.0.0.1:18000"), Some("--xds-tls-cert")),
        ("", Some("[::]:18000"), Some("--xds-insecure")),
        ("--xds-insecure", Some("0.0.0.0:18000"), None),
        (TLS, Some("0.0.0.0:18000"), None),
        (TLS, Some("127.0.0.1:18000"), None),
        (TLS, None, Some("--xds-address is none")),
        ("--xds-tls-cert a", Some("127.0.0.1:1"), Some("go together")),
        ("--xds-tls-cert a --xds-tls-key b", Some("127.0.0.1:1"), Some("go together")),
        ("--xds-client-ca c", Some("127.0.0.1:1"), Some("go together")),
        ("--xds-trust-domain td", Some("127.0.0.1:1"), Some("are for TLS")),
        ("--xds-node-proxy-id spiffe://td/a", Some("127.0.0.1:1"), Some("are for TLS")),
    ] {
        match (options(line, address), words) {
            (Ok(_), None) => {}
            (Err(said), Some(words)) => assert!(said.contains(words), "{line}: {said}"),
            (other, _) => panic!("{line} {address:?}: {other:?}"),
        }
    }
    let both = options(&format!("{TLS} --xds-insecure"), Some("0.0.0.0:1")).unwrap_err();
    assert!(both.contains("leave one of them out"), "{both}");
}

#[test]
fn values_are_read_and_wrong_ones_refused() {
    let line = format!(
        "{TLS} --xds-trust-domain Cluster.Example --xds-socket-mode 0660 --xds-max-stream-age 0 \
         --xds-node-proxy-id spiffe://td/node/{{node}},spiffe://td/b --xds-max-connections 7"
    );
    let read = options(&line, Some("0.0.0.0:1")).unwrap();
    assert_eq!(read.trust_domain.as_deref(), Some("cluster.example"));
    assert_eq!((read.socket_mode, read.limits.age, read.limits.connections), (0o660, None, 7));
    assert_eq!(read.node_proxies.len(), 2);
    assert_eq!(options("", None).unwrap().limits, Limits::default());
    for wrong in [
        "--xds-socket-mode 0888",
        "--xds-socket-mode 1666",
        "--xds-socket-mode 0444",
        "--xds-max-connections 0",
        "--xds-max-peer-streams many",
        "--xds-max-stream-age 10ms",
        "--xds-drain soon",
        "--xds-trust-domain spiffe://td/a",
        "--xds-node-proxy-id td",
    ] {
        assert!(options(wrong, None).is_err(), "{wrong}");
    }
}
