//! The rig proves itself: what its rules redirect, and what they leave alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use it::backend::{self, DnsBackend, Http1Backend, Zone};
use it::client;
use it::envoy::{Envoy, PASSTHROUGH, validate};
use it::net::{DNS_PORT, Mode, Net, Redirect};
use it::sidecar::passing;
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(20);

/// What of a pod's connections its Envoy has seen.
async fn seen(envoy: &Envoy) -> u64 {
    envoy.stat("tcp.passed.downstream_cx_total").await.unwrap()
}

#[tokio::test]
async fn everything_is_redirected_in_both_families_and_envoy_itself_is_not() {
    let net = Net::new().unwrap();
    let server = net.pod().unwrap();
    let v4 = Http1Backend::named(server.netns(), server.at(80).unwrap(), "four").await.unwrap();
    let v6_address = SocketAddr::new(server.v6().unwrap(), 80);
    let v6 = Http1Backend::named(server.netns(), v6_address, "six").await.unwrap();
    let (pod, envoy) = passing(&net, &Redirect::new(Mode::All), SOON).await.unwrap();

    for (n, (backend, name)) in [(&v4, "four"), (&v6, "six")].into_iter().enumerate() {
        let address = backend.address();
        let answer = pod.run(async move { client::get(address, "x", "/").await }).await.unwrap();
        assert_eq!(answer.text(), name);
        // One connection came in and one went out: the second was not redirected again.
        assert_eq!(seen(&envoy).await, n as u64 + 1);
        assert_eq!(backend.counts().connections(), 1);
    }
    // Envoy's way out was not tracked: the packets of two connections at least passed that rule.
    for tables in ["iptables", "ip6tables"] {
        let mut list = pod.netns().command(tables);
        let list = list.args(["-t", "raw", "-nvxL", "OUTPUT"]).output().unwrap();
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let rule = list.lines().find(|line| line.contains("CT")).unwrap();
        let packets: u32 = rule.split_whitespace().next().unwrap().parse().unwrap();
        assert!(packets >= 4, "{list}");
    }
}

#[tokio::test]
async fn what_the_rules_exclude_goes_its_own_way() {
    let net = Net::new().unwrap();
    let server = net.pod().unwrap();
    let stranger = net.pod_at(&["198.51.100.7".parse().unwrap()]).unwrap();
    let excluded_port =
        Http1Backend::named(server.netns(), server.at(3306).unwrap(), "port").await.unwrap();
    let excluded_range =
        Http1Backend::named(stranger.netns(), stranger.at(80).unwrap(), "range").await.unwrap();
    let captured_one =
        Http1Backend::named(server.netns(), server.at(3307).unwrap(), "captured").await.unwrap();
    let redirect = Redirect::new(Mode::All)
        .exclude_ports(3306..=3306)
        .exclude_range("198.51.100.0".parse().unwrap(), 24);
    let (pod, envoy) = passing(&net, &redirect, SOON).await.unwrap();
    let own = backend::echo(pod.netns(), "127.0.0.1:9000".parse().unwrap()).await.unwrap();

    for backend in [&excluded_port, &excluded_range] {
        let address = backend.address();
        let answer = pod.run(async move { client::get(address, "x", "/").await }).await.unwrap();
        assert_eq!(answer.status().unwrap(), 200);
    }
    let address = own.address();
    let (echoed, _) = pod.run(async move { client::say(address, b"lo", 2).await }).await.unwrap();
    assert_eq!(echoed, b"lo");
    assert_eq!(seen(&envoy).await, 0);

    let address = captured_one.address();
    pod.run(async move { client::get(address, "x", "/").await }).await.unwrap();
    assert_eq!(seen(&envoy).await, 1);
}

#[tokio::test]
async fn scoped_mode_redirects_the_mesh_port_alone() {
    let net = Net::new().unwrap();
    let server = net.pod().unwrap();
    let plain = Http1Backend::named(server.netns(), server.at(80).unwrap(), "plain").await.unwrap();
    let mesh =
        Http1Backend::named(server.netns(), server.at(18081).unwrap(), "mesh").await.unwrap();
    let (pod, envoy) = passing(&net, &Redirect::new(Mode::Scoped), SOON).await.unwrap();
    for (backend, expected) in [(&plain, 0), (&mesh, 1)] {
        let address = backend.address();
        pod.run(async move { client::get(address, "x", "/").await }).await.unwrap();
        assert_eq!(seen(&envoy).await, expected);
    }
}

#[tokio::test]
async fn queries_to_the_pods_own_nameserver_alone_are_redirected() {
    let net = Net::new().unwrap();
    let servers =
        net.pod_at(&["10.96.0.10".parse().unwrap(), "10.244.9.9".parse().unwrap()]).unwrap();
    let zone =
        |answer: &str| -> Zone { [("name.test".into(), vec![answer.parse().unwrap()])].into() };
    let own =
        DnsBackend::start(servers.netns(), "10.96.0.10:53".parse().unwrap(), zone("192.0.2.1"))
            .await
            .unwrap();
    let other =
        DnsBackend::start(servers.netns(), "10.244.9.9:53".parse().unwrap(), zone("192.0.2.2"))
            .await
            .unwrap();
    let pod = net.pod().unwrap();
    pod.redirect(&Redirect::new(Mode::Scoped).nameserver(own.address().ip())).unwrap();
    let filter = SocketAddr::from(([127, 0, 0, 1], DNS_PORT));
    let filter = DnsBackend::start(pod.netns(), filter, zone("192.0.2.3")).await.unwrap();

    for (server, answer) in [(own.address(), "192.0.2.3"), (other.address(), "192.0.2.2")] {
        let ask = async move { client::ask(server, "Name.test.", false, SOON).await };
        let records = pod.run(ask).await.unwrap();
        assert_eq!(records.addresses, [answer.parse::<IpAddr>().unwrap()]);
        assert_eq!(records.ttls, [60]);
    }
    assert_eq!((own.queries(), other.queries(), filter.queries()), (0, 1, 1));
    let server = own.address();
    let unknown =
        pod.run(async move { client::ask(server, "no.test", false, SOON).await }).await.unwrap();
    assert_eq!(unknown.code, "Non-Existent Domain");
}

#[tokio::test]
async fn a_cluster_ip_that_nothing_captures_leads_nowhere_at_once() {
    let net = Net::new().unwrap();
    let pod = net.pod().unwrap();
    let start = std::time::Instant::now();
    for n in 0..100 {
        for address in [format!("10.96.7.{n}:80"), format!("[fd00:10:96::{n}]:80")] {
            let address: SocketAddr = address.parse().unwrap();
            let connect = async move { Ok(TcpStream::connect(address).await.unwrap_err()) };
            let refused = pod.run(connect).await.unwrap();
            assert_eq!(
                refused.kind(),
                std::io::ErrorKind::ConnectionRefused,
                "{address}: {refused:?}"
            );
        }
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_wrong_bootstrap_is_refused_in_envoys_words() {
    validate(PASSTHROUGH).unwrap();
    let wrong = validate(&PASSTHROUGH.replace("ORIGINAL_DST", "ORIGINAL_DUST")).unwrap_err();
    assert!(format!("{wrong:#}").contains("ORIGINAL_DUST"), "{wrong:#}");
    let net = Net::new().unwrap();
    let pod = net.pod().unwrap();
    let mut envoy = Envoy::start(&pod, "{\"static_resources\": 7}").unwrap();
    let ended = envoy.ready(SOON).await.unwrap_err();
    assert!(format!("{ended:#}").contains("last words"), "{ended:#}");
}

#[tokio::test]
async fn pods_that_come_and_go_leave_the_node_where_the_others_know_it() {
    let net = Net::new().unwrap();
    let address = || {
        let link =
            net.node().command("ip").args(["-brief", "link", "show", "br0"]).output().unwrap();
        let words = String::from_utf8(link.stdout).unwrap();
        words.split_whitespace().nth(2).unwrap().to_owned()
    };
    let first = address();
    // Of eight random addresses one would be the lowest so far.
    for _ in 0..8 {
        let _pod = net.pod().unwrap();
        assert_eq!(address(), first);
    }
    assert_eq!(address(), first);
}
