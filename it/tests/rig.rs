//! The rig proves itself: what it redirects, that its backends and clients speak, and that it leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use it::backend::{self, DnsBackend, H2Backend, Http1Backend, Note, Reply, Zone};
use it::client::{self, GrpcClient, H2c, Received};
use it::envoy::{Envoy, validate};
use it::load::{Load, Pace, Work};
use it::net::{DNS_PORT, Mode, Net, Pod, Redirect};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(20);

/// Passes every redirected connection on to where it was going.
const PASSTHROUGH: &str = r#"{
  "static_resources": {
    "listeners": [{
      "name": "capture",
      "address": {"socket_address": {"address": "127.0.0.1", "port_value": 18001}},
      "additional_addresses": [{"address": {"socket_address": {"address": "::1", "port_value": 18001}}}],
      "listener_filters": [{"name": "original_dst", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst"}}],
      "filter_chains": [{"filters": [{"name": "tcp", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": "passed", "cluster": "original"}}]}]
    }],
    "clusters": [{"name": "original", "type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "5s"}]
  }
}"#;

/// Makes a pod whose Envoy passes on what is redirected.
async fn captured(net: &Net, redirect: &Redirect) -> (Pod, Envoy) {
    let pod = net.pod().unwrap();
    pod.redirect(redirect).unwrap();
    let mut envoy = Envoy::start(&pod, PASSTHROUGH).unwrap();
    envoy.ready(SOON).await.unwrap();
    (pod, envoy)
}

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
    let (pod, envoy) = captured(&net, &Redirect::new(Mode::All)).await;

    for (n, (backend, name)) in [(&v4, "four"), (&v6, "six")].into_iter().enumerate() {
        let address = backend.address();
        let answer = pod.run(async move { client::get(address, "x", "/").await }).await.unwrap();
        assert_eq!(answer.text(), name);
        // One connection came in and one went out: the second was not redirected again.
        assert_eq!(seen(&envoy).await, n as u64 + 1);
        assert_eq!(backend.counts().connections(), 1);
    }
    // The way out was not tracked, the way in was.
    let tracked = pod.netns().command("cat").arg("/proc/net/nf_conntrack").output().unwrap();
    let tracked = String::from_utf8_lossy(&tracked.stdout).into_owned();
    assert!(
        tracked.is_empty() || tracked.contains("dport=18001") || tracked.contains("sport=18001"),
        "{tracked}"
    );
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
    let (pod, envoy) = captured(&net, &redirect).await;
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
    let (pod, envoy) = captured(&net, &Redirect::new(Mode::Scoped)).await;
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
async fn a_cluster_ip_that_nothing_captures_leads_nowhere() {
    let net = Net::new().unwrap();
    let pod = net.pod().unwrap();
    for address in ["10.96.7.7:80", "[fd00:10:96::7]:80"] {
        let address: SocketAddr = address.parse().unwrap();
        let refused = pod
            .run(async move { Ok(TcpStream::connect(address).await.unwrap_err()) })
            .await
            .unwrap();
        let kind = refused.kind();
        assert!(
            matches!(
                kind,
                std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable
            ),
            "{address}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn http_backends_keep_what_they_got_and_answer_what_they_were_told() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let exact = b"HTTP/1.1 207 Odd Words\r\nX-CaSe: A\r\nx-case: b\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
        3;ext=1\r\nabc\r\n0\r\nX-T: end\r\n\r\n";
    let backend = Http1Backend::start(server.netns(), server.at(80).unwrap(), move |request| {
        match request.head.start_line().split(' ').nth(1) {
            Some("/exact") => Reply::raw(exact),
            Some("/slow") => {
                Reply::empty().pause(Duration::from_millis(300)).then("HTTP/1.1 204 X\r\n\r\n")
            }
            Some("/cut") => Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").close(),
            _ => Reply::ok(request.body.clone()),
        }
    })
    .await
    .unwrap();
    let address = backend.address();
    pod.run(async move {
        let mut http = client::Http1::connect(address).await?;
        let answer = http.exchange(b"GET /exact HTTP/1.1\r\nHoSt: a\r\nB:c\r\n\r\n").await?;
        assert_eq!((answer.status()?, answer.text().as_str()), (207, "abc"));
        assert_eq!(answer.message.head.start_line(), "HTTP/1.1 207 Odd Words");
        assert_eq!(answer.message.head.fields()[0], ("X-CaSe".into(), "A".into()));
        assert_eq!(answer.message.trailers.0, b"X-T: end\r\n");
        let answer = http.exchange(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await?;
        assert!(answer.first_byte >= Duration::from_millis(300) && answer.status()? == 204);
        let asked = b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n\
            2\r\nhi\r\n0\r\n\r\n";
        let answer = http.exchange(asked).await?;
        assert_eq!((answer.interim.len(), answer.text().as_str()), (1, "hi"));
        let cut = http.exchange(b"GET /cut HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap_err();
        assert!(format!("{cut:#}").contains("3 bytes of 9"), "{cut:#}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!((backend.counts().connections(), backend.counts().requests()), (1, 4));
    let first = &backend.take()[0];
    assert_eq!(first.head.0, b"GET /exact HTTP/1.1\r\nHoSt: a\r\nB:c\r\n\r\n");
    backend.stop().await;
    let refused = pod.run(async move { client::get(address, "a", "/").await }).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("refused"));
}

#[tokio::test]
async fn h2c_grpc_and_websocket_speak() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let h2 = H2Backend::named(server.netns(), server.at(81).unwrap(), "two").await.unwrap();
    let grpc = backend::grpc(server.netns(), server.at(82).unwrap()).await.unwrap();
    let ws = backend::ws_echo(server.netns(), server.at(83).unwrap()).await.unwrap();
    let (h2_at, grpc_at, ws_at) = (h2.address(), grpc.address(), ws.address());
    pod.run(async move {
        let answer = H2c::connect(h2_at).await?.get("http://web.shop:81/path?q").await?;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"two"[..]));

        let mut grpc = GrpcClient::connect(grpc_at, "api.shop:82").await?;
        let note = Note::new("hello", 3);
        assert_eq!(grpc.say(note.clone()).await?, note);
        assert_eq!(
            grpc.gather(vec![note.clone(), Note::new("!", 4)]).await?,
            Note::new("hello!", 7)
        );
        assert_eq!(grpc.spread(note.clone()).await?.len(), 3);
        let (send, notes) = tokio::sync::mpsc::channel(1);
        let mut chat = grpc.chat(tokio_stream::wrappers::ReceiverStream::new(notes)).await?;
        for n in 0..3 {
            // The next goes only when the last came back: both directions are open at once.
            send.send(Note::new("chat", n)).await?;
            assert_eq!(chat.message().await?, Some(Note::new("chat", n)));
        }
        let failed = grpc.say(Note::new("fail", 0)).await.unwrap_err();
        assert_eq!(failed.code(), tonic::Code::FailedPrecondition);

        client::websocket(ws_at, "web.shop", "/ws", &["one", "two"]).await?;
        Ok(())
    })
    .await
    .unwrap();
    let asked = h2.take();
    assert_eq!(asked[0].head.uri.to_string(), "http://web.shop:81/path?q");
}

#[tokio::test]
async fn tcp_backends_speak() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let at = |port| server.at(port).unwrap();
    let greeter = backend::greeter(server.netns(), at(91), "220 hi\r\n").await.unwrap();
    let sink = backend::sink(server.netns(), at(92)).await.unwrap();
    let source = backend::source(server.netns(), at(93), 5_000_000).await.unwrap();
    let closer = backend::closer(server.netns(), at(94)).await.unwrap();
    let addresses = [&greeter, &sink, &source, &closer].map(backend::Backend::address);
    let (pushed, pulled) = pod
        .run(async move {
            let (greeting, _) = client::say(addresses[0], b"", 8).await?;
            assert_eq!(greeting, b"220 hi\r\n");
            let pushed = client::push(addresses[1], 5_000_000).await?;
            let pulled = client::pull(addresses[2]).await?;
            let ended = client::say(addresses[3], b"", 1).await.unwrap_err();
            assert!(format!("{ended:#}").contains("closed after 0 bytes"), "{ended:#}");
            Ok((pushed, pulled))
        })
        .await
        .unwrap();
    assert_eq!((pushed, pushed.length), (pulled, 5_000_000));
    let other = Received { length: pushed.length, checksum: pushed.checksum ^ 1 };
    assert_ne!(pushed, other);
}

#[tokio::test]
async fn load_sees_a_lost_connection_and_none_where_there_is_none() {
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    let http = Http1Backend::named(server.netns(), server.at(80).unwrap(), "ok").await.unwrap();
    let echo = backend::echo(server.netns(), server.at(90).unwrap()).await.unwrap();
    let work = [
        Work::Http { address: http.address(), host: "h".into(), body: "ok".into() },
        Work::Echo { address: echo.address() },
    ];
    let load = Load::start(pod.netns(), &work, Pace::default()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let report = load.stop().await.unwrap();
    report.flawless(work.len()).unwrap();

    let load = Load::start(pod.netns(), &work, Pace::default()).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let address = echo.address();
    echo.stop().await;
    let _again = backend::echo(server.netns(), address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let report = load.stop().await.unwrap();
    assert!(report.failed >= 1 && report.connections >= 3, "{report:?}");
    assert!(report.flawless(work.len()).is_err());
}

/// The network namespaces and folders there are that bear our process id.
fn ours() -> BTreeSet<String> {
    let own = format!("-{}-", std::process::id());
    let names =
        ["/run/netns", "/tmp"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(&own))
        .collect()
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let net = Net::new().unwrap();
    let (pod, mut envoy) = captured(&net, &Redirect::new(Mode::All)).await;
    let names = [pod.netns().name().to_owned(), net.node().name().to_owned()];
    let folders = ours().into_iter().filter(|name| name.starts_with("aether-it-")).count();
    assert!(folders > 0 && names.iter().all(|name| ours().contains(name)));
    let id = envoy.process().id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    assert!(status.contains("Name:\tenvoy") && status.contains("Uid:\t1337\t1337"), "{status}");
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");

    // A server is bound and a connection open when it all goes.
    let listener = pod.run(async { Ok(TcpListener::bind("127.0.0.1:1").await?) }).await.unwrap();
    let connected = pod.run(async { Ok(TcpStream::connect("127.0.0.1:1").await?) }).await.unwrap();
    drop((envoy, pod, net));
    drop((listener, connected));
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    assert!(names.iter().all(|name| !ours().contains(name)));
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
async fn half_a_request_in_pieces_reaches_the_backend_whole() -> Result<()> {
    let net = Net::new()?;
    let (server, pod) = (net.pod()?, net.pod()?);
    let backend = Http1Backend::named(server.netns(), server.at(80)?, "x").await?;
    let address = backend.address();
    let answer = pod
        .run(async move {
            let mut stream = TcpStream::connect(address).await?;
            for piece in ["GET / HT", "TP/1.1\r\nhost: a\r", "\n\r", "\n"] {
                stream.write_all(piece.as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut wire = it::wire::Wire::new(stream);
            let head = wire.head().await?.unwrap();
            wire.answer_body(head, false).await
        })
        .await?;
    assert_eq!(answer.body, b"x");
    Ok(())
}
