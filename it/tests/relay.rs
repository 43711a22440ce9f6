//! The listeners are no relay: nobody reaches them from outside, and they do not feed themselves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::backend::{self, Http1Backend};
use it::client;
use it::mesh::{Mesh, Plan};
use it::net::{CAPTURE_PORT, DNS_PORT, Mode, Net, Pod, Redirect};
use it::world::served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);
const CAPTURED: &str = "listener.capture.downstream_cx_total";

/// A caller with both listeners, and a service for it to call.
struct Stage {
    mesh: Mesh,
    web: Http1Backend,
    server: Pod,
}

impl Stage {
    async fn set(mode: Mode) -> Result<Self> {
        let net = Net::new()?;
        let server = net.pod()?;
        let web = Http1Backend::named(server.netns(), server.at(8080)?, "web").await?;
        let ports = [(80, "http", 8080), (90, "tcp", 8080)];
        let objects = served("shop/web", &["10.96.1.10"], &ports, server.v4()?)?;
        let mut plan = Plan::new(&["shop"], objects.into(), Redirect::new(mode));
        plan.serve = match mode {
            Mode::All => &["--dns-filter"],
            Mode::Scoped => &["--dns-filter", "--capture-mode", "scoped"],
        };
        Ok(Self { mesh: Mesh::start(net, plan).await?, web, server })
    }

    async fn captured(&self) -> Result<u64> {
        self.mesh.caller()?.envoy.stat(CAPTURED).await
    }
}

#[tokio::test]
async fn nobody_outside_reaches_the_listeners() -> Result<()> {
    for mode in [Mode::All, Mode::Scoped] {
        let stage = Stage::set(mode).await?;
        let caller = &stage.mesh.caller()?.pod;
        // What the pod serves on its addresses can be reached; the listeners can't.
        let echo = backend::echo(caller.netns(), caller.at(7)?).await?;
        let open = echo.address();
        for ip in caller.addresses().to_vec() {
            for outside in [stage.server.netns(), stage.mesh.net.node()] {
                outside.run(async move { client::say(open, b"hi", 2).await }).await?;
                let tcp = SocketAddr::new(ip, CAPTURE_PORT);
                let refused = outside.run(async move { Ok(TcpStream::connect(tcp).await) }).await?;
                let kind = refused.err().context("a connection from outside was accepted")?.kind();
                ensure!(kind == ErrorKind::ConnectionRefused, "{tcp}: {kind:?}");
                let udp = SocketAddr::new(ip, DNS_PORT);
                let ask = async move { client::ask(udp, "web.aether.internal", false, SOON).await };
                let refused =
                    outside.run(ask).await.err().context("a query from outside was answered")?;
                ensure!(format!("{refused:#}").contains("refused"), "{udp}: {refused:#}");
            }
        }
        ensure!(stage.captured().await? == 0);
        // The listeners are there.
        let own = SocketAddr::from(([127, 0, 0, 1], DNS_PORT));
        let ask = async move { client::ask(own, "web.aether.internal", false, SOON).await };
        ensure!(caller.run(ask).await?.addresses.len() == 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_to_the_listener_itself_ends_at_once() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let caller = &stage.mesh.caller()?.pod;
    let http = b"GET / HTTP/1.1\r\nHost: web.shop\r\n\r\n".as_slice();
    let hello = [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3];
    let mut made = 0;
    for to in ["127.0.0.1:18001", "[::1]:18001"] {
        let to: SocketAddr = to.parse()?;
        for (what, bytes, longest) in [
            ("HTTP", http, Duration::from_millis(500)),
            (
                "HTTP for nobody",
                b"GET / HTTP/1.1\r\nHost: localhost:18001\r\n\r\n",
                Duration::from_millis(500),
            ),
            ("raw bytes", b"\x00\x01\x02\x03\x04\x05\x06\x07", Duration::from_millis(500)),
            ("TLS", &hello, Duration::from_millis(1500)),
            // Who says nothing is waited for, once.
            ("silence", b"", Duration::from_millis(2500)),
        ] {
            let start = Instant::now();
            let bytes = bytes.to_vec();
            let talk = async move {
                let mut stream = TcpStream::connect(to).await?;
                stream.write_all(&bytes).await?;
                let mut got = Vec::new();
                // A reset is an end as well.
                let _ =
                    timeout(SOON, stream.read_to_end(&mut got)).await.context("it stays open")?;
                Ok(got)
            };
            let got = caller.run(talk).await?;
            let took = start.elapsed();
            made += 1;
            ensure!(
                got.is_empty(),
                "{what} to {to} was answered with {:?}",
                String::from_utf8_lossy(&got)
            );
            ensure!(took < longest, "{what} to {to} ended after {took:?}");
            // One came in, and none came of it.
            // It is counted a moment after it was closed.
            let counted = || async {
                let captured = stage.captured().await?;
                ensure!(captured >= made, "{captured} connections, not {made}");
                Ok(captured)
            };
            let captured = it::eventually("the counter", SOON, counted).await?;
            ensure!(captured == made, "{what} to {to}: {captured} connections, not {made}");
        }
    }
    ensure!(stage.web.counts().connections() == 0);
    let active = stage.mesh.caller()?.envoy.stat("listener.capture.downstream_cx_active").await?;
    ensure!(active == 0, "{active} connections are left");
    Ok(())
}

#[tokio::test]
async fn the_listener_of_the_scoped_mode_does_not_feed_itself_either() -> Result<()> {
    let stage = Stage::set(Mode::Scoped).await?;
    let caller = stage.mesh.caller()?;
    let to = "127.0.0.1:18001".parse()?;
    let answer = caller.get(to, "nobody.example").await?;
    ensure!(answer.status()? == 404 && answer.text().contains("nobody.example"), "{answer:?}");
    // It stands open to its own pod, which would reach the same by the mesh port.
    let answer = caller.get(to, "web.shop").await?;
    ensure!(answer.text() == "web", "{answer:?}");
    ensure!(stage.captured().await? == 2);
    Ok(())
}

#[tokio::test]
async fn the_dns_listener_sends_nothing_to_itself() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let caller = &stage.mesh.caller()?.pod;
    for own in ["127.0.0.1", "[::1]"] {
        let own: SocketAddr = format!("{own}:{DNS_PORT}").parse()?;
        let garbage = async move {
            let any = if own.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any).await?;
            Ok(socket.send_to(b"\x00\x01garbage", own).await?)
        };
        caller.run(garbage).await?;
        let ask = async move { client::ask(own, "web.shop.aether.internal", false, SOON).await };
        let records = caller.run(ask).await?;
        ensure!(records.addresses == ["10.96.1.10".parse::<std::net::IpAddr>()?], "{records:?}");
    }
    Ok(())
}
