//! What is no mesh service passes untouched when everything is redirected.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "strangers/tls.rs"]
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::backend::{self, Http1Backend, Reply, noise};
use it::client;
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::sidecar::Sidecar;
use it::world::served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(20);
/// Whole, so that Envoy has nothing to add: it dates what is not dated.
const ANSWER: &[u8] = b"HTTP/1.1 299 Odd  Words\r\nDATE: today\r\nX-b: 1\r\nx-A: 2\r\ncontent-Length: 8\r\n\r\nstranger";
const PASSED: &str = "cluster.passthrough_original_dst.upstream_cx_total";

/// A caller, a stranger at addresses of both families, and the mesh's one service at another pod.
struct Stage {
    mesh: Mesh,
    web: Http1Backend,
    stranger: Pod,
    _server: Pod,
}

impl Stage {
    async fn set() -> Result<Self> {
        let net = Net::new()?;
        let server = net.pod()?;
        let web = Http1Backend::named(server.netns(), server.at(8080)?, "web").await?;
        let stranger = net.pod_at(&["198.51.100.7".parse()?, "2001:db8::7".parse()?])?;
        let objects = served("shop/web", &["10.96.1.10"], &[(80, "http", 8080)], server.v4()?)?;
        let plan = Plan::new(&["shop"], objects.into(), Redirect::new(Mode::All));
        Ok(Self { mesh: Mesh::start(net, plan).await?, web, stranger, _server: server })
    }

    fn caller(&self) -> &Sidecar {
        &self.mesh.callers[0]
    }

    fn addresses(&self, port: u16) -> [SocketAddr; 2] {
        [self.stranger.v4().unwrap(), self.stranger.v6().unwrap()]
            .map(|ip| SocketAddr::new(ip, port))
    }

    /// What has passed, so that it is known to have been captured.
    async fn passed(&self) -> Result<u64> {
        self.caller().envoy.stat(PASSED).await
    }
}

#[tokio::test]
async fn http_goes_where_it_was_going_byte_for_byte() -> Result<()> {
    let stage = Stage::set().await?;
    for (n, to) in stage.addresses(8123).into_iter().enumerate() {
        let backend =
            Http1Backend::start(stage.stranger.netns(), to, |_| Reply::raw(ANSWER)).await?;
        for host in [
            "stranger.example",
            "stranger.example:8123",
            "stranger.example:80",
            &to.to_string(),
            "web.elsewhere",
        ] {
            // The odd spelling, the order and the path are the client's own.
            let request = format!(
                "GET /%2e/a//b?q=%zz HTTP/1.1\r\nhOsT: {host}\r\nX-One: 1\r\nx-TWO: 2\r\nAccept: */*\r\n\r\n"
            );
            let sent = request.clone();
            let ask = async move { client::request(to, sent.as_bytes()).await };
            let answer = stage.caller().pod.run(ask).await.with_context(|| host.to_owned())?;
            ensure!(
                [answer.message.head.0.as_slice(), &answer.message.body].concat() == ANSWER,
                "{host}: {answer:?}"
            );
            let got = backend.take();
            ensure!(got.len() == 1, "{host}: {got:?}");
            let got = String::from_utf8_lossy(&got[0].head.0).into_owned();
            ensure!(got == request, "{host}: {got:?}");
        }
        ensure!(stage.passed().await? == 5 * (n as u64 + 1));
    }
    ensure!(stage.web.counts().connections() == 0);
    Ok(())
}

#[tokio::test]
async fn a_connect_to_a_strangers_proxy_passes() -> Result<()> {
    let stage = Stage::set().await?;
    let [to, _] = stage.addresses(3128);
    // As a forward proxy answers; what follows is between the two ends.
    let proxy = Http1Backend::start(stage.stranger.netns(), to, |request| {
        let line = request.head.start_line();
        if line == "CONNECT far.example:443 HTTP/1.1" {
            return Reply::raw("HTTP/1.1 200 Connection established\r\n\r\ntunnel").close();
        }
        Reply::ok(line)
    })
    .await?;
    let talk = async move {
        let mut http = client::Http1::connect(to).await?;
        http.wire()
            .write(b"CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n")
            .await?;
        let head = http.wire().head().await?.context("closed")?;
        let (mut stream, mut rest) = http.into_parts();
        tokio::time::timeout(SOON, stream.read_to_end(&mut rest))
            .await
            .context("it stays open")??;
        Ok((head.status()?, rest))
    };
    let (status, rest) = stage.caller().pod.run(talk).await?;
    ensure!(status == 200 && rest == b"tunnel", "{status} {rest:?}");
    ensure!(proxy.counts().connections() == 1 && stage.passed().await? == 1);
    Ok(())
}

#[tokio::test]
async fn raw_tcp_passes_whoever_speaks_first() -> Result<()> {
    let stage = Stage::set().await?;
    for to in stage.addresses(7777) {
        let _echo = backend::echo(stage.stranger.netns(), to).await?;
        let bytes = noise::bytes(300_000);
        let sent = bytes.clone();
        // In pieces, the first one too short to tell anything from, and the end of one direction before the other's.
        let talk = async move {
            let (mut read, mut write) = TcpStream::connect(to).await?.into_split();
            let send = async move {
                write.write_all(&sent[..3]).await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
                write.write_all(&sent[3..]).await?;
                write.shutdown().await
            };
            let mut got = Vec::new();
            let (sent, received) = tokio::join!(send, read.read_to_end(&mut got));
            sent?;
            received?;
            Ok(got)
        };
        let got = stage.caller().pod.run(talk).await?;
        ensure!(got == bytes, "{} bytes of {} came back", got.len(), bytes.len());
    }
    // Server-first: at once where the port is listed, after the inspection where it is not.
    for (port, least, most) in [(22, 0, 300), (2222, 900, 2000)] {
        for to in stage.addresses(port) {
            let _greeter = backend::greeter(stage.stranger.netns(), to, "SSH-2.0-x\r\n").await?;
            let mut best = Duration::MAX;
            for _ in 0..3 {
                let say = async move { client::say(to, b"", 11).await };
                let (greeting, took) = stage.caller().pod.run(say).await?;
                ensure!(greeting == b"SSH-2.0-x\r\n");
                best = best.min(took);
            }
            let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
            ensure!(least <= best && best < most, "{to} greeted after {best:?}");
        }
    }
    ensure!(stage.passed().await? == 2 + 4 * 3);
    ensure!(stage.web.counts().connections() == 0);
    Ok(())
}

#[tokio::test]
async fn a_stranger_that_refuses_is_refused_and_none_is_made_up() -> Result<()> {
    let stage = Stage::set().await?;
    let to = stage.addresses(81)[0];
    let answer = stage.caller().get(to, "stranger.example").await?;
    ensure!(answer.status()? == 503 && answer.text().contains("aether"), "{answer:?}");
    let say = async move { Ok(client::say(to, b"\x00\x01\x02\x03\x04\x05", 1).await.is_err()) };
    ensure!(stage.caller().pod.run(say).await?);
    Ok(())
}
