//! The rig proves itself: a source port tells nothing of who used it before.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use it::backend;
use it::envoy::{Envoy, PASSTHROUGH};
use it::net::{Mode, Net, Redirect};
use it::places::{self, SIDECAR_USER};
use it::process::{Process, Spec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

#[tokio::test]
async fn a_port_that_the_proxy_used_is_redirected_when_an_application_uses_it() {
    let limit = Duration::from_secs(20);
    let net = Net::new().unwrap();
    let (server, pod) = (net.pod().unwrap(), net.pod().unwrap());
    // It closes first, so that the port is free at once.
    let source = backend::source(server.netns(), server.at(93).unwrap(), 1000).await.unwrap();
    pod.redirect(&Redirect::new(Mode::All)).unwrap();
    let mut envoy = Envoy::start(&pod, PASSTHROUGH).unwrap();
    envoy.ready(limit).await.unwrap();

    let (from, to) = (SocketAddr::new(pod.v4().unwrap(), 40_000), source.address());
    let folder = places::folder().unwrap();
    let ask = format!("echo | nc -w 1 -p {} {} {}", from.port(), to.ip(), to.port());
    let mut spec = Spec::new(Path::new("bash"), ["-c", &ask], &folder.path().join("nc.log"));
    spec.netns = Some(pod.netns().name().to_owned());
    spec.user = Some(SIDECAR_USER);
    let mut as_the_proxy = Process::start(&spec).unwrap();
    assert!(as_the_proxy.wait(limit).unwrap().success());
    assert_eq!(source.counts().connections(), 1, "{}", as_the_proxy.log());
    let seen = || envoy.stat("tcp.passed.downstream_cx_total");
    assert_eq!(seen().await.unwrap(), 0, "what the proxy's user does is left alone");

    let got = pod
        .run(async move {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(from)?;
            let mut bytes = Vec::new();
            let mut stream = socket.connect(to).await?;
            stream.write_all(b"x").await?;
            stream.read_to_end(&mut bytes).await?;
            Ok(bytes.len())
        })
        .await
        .unwrap();
    assert_eq!((got, seen().await.unwrap()), (1000, 1));
    assert_eq!(source.counts().connections(), 2);
}
