//! How connections end: one direction at a time, or at once where nobody serves.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::backend::noise;
use it::client;
use it::net::Mode;
use it::sidecar::Sidecar;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::stage::{MANY, MIXED, ONE, ONE_V6, SIX, Stage, at};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn either_side_ends_its_direction_and_goes_on_reading() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    // The client first: the sink answers only when it has seen the end.
    let push = async move { client::push(at(MANY, 9002), 5_000_000).await };
    ensure!(stage.caller().pod.run(push).await?.length == 5_000_000);
    // With few bytes too, once they were classified: the sink has its connection then.
    let few = async move {
        let mut stream = TcpStream::connect(at(MANY, 9002)).await?;
        stream.write_all(b"\x00\x01\x02\x03\x04\x05").await?;
        Ok(stream)
    };
    let mut stream = stage.caller().pod.run(few).await?;
    let two = || async {
        let count = stage.sink.counts().connections();
        ensure!(count == 2, "{count}");
        Ok(())
    };
    it::eventually("connections of the sink", SOON, two).await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.context("the sink is silent")??;
    ensure!(answer.starts_with("6 "), "{answer:?}");
    // The server first: it ends its direction with its first words, and gets what the client says after that.
    let listener = stage.server.at(7005)?;
    let listener = stage.server.run(async move { Ok(TcpListener::bind(listener).await?) }).await?;
    let server = stage.server.netns().spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.read_u8().await?;
        stream.write_all(b"last words").await?;
        stream.shutdown().await?;
        client::drain(&mut stream).await
    })?;
    let talk = async {
        let mut stream = TcpStream::connect(at(MANY, 9005)).await?;
        stream.write_all(b"begin\n").await?;
        let mut words = Vec::new();
        timeout(SOON, stream.read_to_end(&mut words)).await.context("the end does not come")??;
        ensure!(words == b"last words", "{words:?}");
        // The end of the other direction has arrived, and ours is open.
        let sent = noise::send(&mut stream, 1_000_000).await?;
        stream.shutdown().await?;
        Ok(sent)
    };
    let sent = stage.caller().pod.run(talk).await?;
    let got = timeout(SOON, server).await.context("the server still waits")???;
    // "egin\n" is in it, so the lengths tell.
    ensure!(got.length == sent.length + 5, "{got:?} of {sent:?}");
    Ok(())
}

/// Connects, sends this, and waits for the end: how long it took. An answer is an error.
async fn closed(caller: &Sidecar, to: SocketAddr, bytes: &'static [u8]) -> Result<Duration> {
    let start = Instant::now();
    let talk = async move {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(bytes).await?;
        let mut got = Vec::new();
        // A reset is an end as well.
        let _ = timeout(SOON, stream.read_to_end(&mut got)).await.context("it stays open")?;
        Ok(got)
    };
    let got = caller.pod.run(talk).await?;
    ensure!(got.is_empty(), "{to} answered {got:?}");
    Ok(start.elapsed())
}

#[tokio::test]
async fn a_port_that_the_service_lacks_is_closed_at_once() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let caller = stage.caller();
    let passed = "cluster.passthrough_original_dst.upstream_cx_total";
    for (to, bytes, longest) in [
        (at(ONE, 8), &b"\x01\x02\x03\x04\x05\x06"[..], 300),
        (at(ONE_V6, 8), b"\x01\x02\x03\x04\x05\x06", 300),
        (at(SIX, 65535), b"\x01\x02\x03\x04\x05\x06", 300),
        (at(MANY, 80), b"GET / HTTP/1.1\r\nHost: many.shop\r\n\r\n", 300),
        (at(MIXED, 9001), b"\x01\x02\x03\x04\x05\x06", 300),
        // Silent: at once where nothing is inspected, else after the inspection.
        (at(ONE, 22), b"", 300),
        (at(ONE, 8), b"", 2500),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            best = best.min(closed(caller, to, bytes).await?);
        }
        eprintln!("{to} closed after {best:?} ({} bytes sent)", bytes.len());
        ensure!(best < Duration::from_millis(longest), "{to} closed after {best:?}");
    }
    ensure!(caller.envoy.stat(passed).await? == 0, "something passed");
    ensure!(stage.echo.counts().connections() == 0, "something was served");
    Ok(())
}

#[tokio::test]
async fn what_the_backend_does_the_client_sees() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    // A backend that accepts and closes, and one that is not there.
    for port in [9004, 9005] {
        let took = closed(stage.caller(), at(MANY, port), b"\x01\x02\x03\x04\x05\x06").await?;
        ensure!(took < Duration::from_secs(3), "{port} closed after {took:?}");
    }
    Ok(())
}
