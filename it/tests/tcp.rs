//! TCP goes by its address: what raw protocols see of the mesh, in a real Envoy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "tcp/ends.rs"]
mod ends;
#[path = "tcp/idle.rs"]
mod idle;
#[path = "tcp/stage.rs"]
mod stage;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use it::client;
use it::net::Mode;
use it::trace::Tally;
use stage::{LARGE, MANY, MIXED, ONE, ONE_V6, SIX, Stage, at};

#[tokio::test]
async fn the_client_speaks_first_to_services_of_every_shape() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let words: [&[u8]; 4] = [
        b"*1\r\n$4\r\nPING\r\n",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        // As the first bytes of a TLS handshake, which is no business of the mesh.
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
        // Too few bytes to tell anything from: they wait for the inspection, and go through.
        b"hi",
    ];
    for (to, cluster, endpoint) in [
        (at(ONE, 7), "tcp:one.shop.aether.internal:7", stage.server.at(7000)?),
        (at(ONE_V6, 7), "tcp:one.shop.aether.internal:7", stage.server.at(7000)?),
        (at(MANY, 7), "tcp:many.shop.aether.internal:7", stage.server.at(7000)?),
        (at(MIXED, 9000), "tcp:mixed.shop.aether.internal:9000", stage.server.at(7000)?),
        (at(SIX, 7), "tcp:six.shop.aether.internal:7", (stage.server.v6()?, 7000).into()),
        // The mesh port is the default port.
        (at(ONE, 18081), "tcp:one.shop.aether.internal:18081", stage.server.at(7000)?),
        (at(MANY, 18081), "tcp:many.shop.aether.internal:18081", stage.server.at(7000)?),
    ] {
        for bytes in words {
            let before = Tally::of(&stage.caller().envoy).await?;
            let say = async move { client::say(to, bytes, bytes.len()).await };
            let (echoed, _) = stage.caller().pod.run(say).await?;
            ensure!(echoed == bytes, "{to}: {echoed:?}");
            let used = before.to(&Tally::of(&stage.caller().envoy).await?);
            ensure!(used.len() == 1 && used[0].cluster == cluster, "{to}: {used:?}");
            ensure!(used[0].endpoint == endpoint.to_string(), "{to}: {used:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn http_and_tcp_share_an_address() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let caller = stage.caller();
    // HTTP at any port of the address goes by its host, raw bytes by their port.
    for port in [80, 9000, 9999] {
        let answer = caller.get(at(MIXED, port), "mixed.shop").await?;
        ensure!(answer.text() == "web", "{port}: {answer:?}");
    }
    let say = async { client::say(at(MIXED, 9000), b"\x01\x02\x03\x04\x05\x06", 6).await };
    ensure!(caller.pod.run(say).await?.0 == b"\x01\x02\x03\x04\x05\x06");
    let say = async { client::say(at(MIXED, 3306), b"", 6).await };
    ensure!(caller.pod.run(say).await?.0 == b"hello\n");
    // To a Service of TCP ports alone HTTP is bytes like any other.
    let request: &[u8] = b"GET / HTTP/1.1\r\nHost: mixed.shop\r\n\r\n";
    let say = async move { client::say(at(ONE, 7), request, request.len()).await };
    ensure!(caller.pod.run(say).await?.0 == request);
    ensure!(stage.web.counts().requests() == 3);
    Ok(())
}

#[tokio::test]
async fn the_server_speaks_first() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    for (to, least, most) in
        [(at(MANY, 3306), 0, 300), (at(MIXED, 3306), 0, 300), (at(MANY, 3307), 900, 2000)]
    {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let say = async move { client::say(to, b"", 6).await };
            let (greeting, took) = stage.caller().pod.run(say).await?;
            ensure!(greeting == b"hello\n", "{to}: {greeting:?}");
            best = best.min(took);
        }
        eprintln!("{to} greeted after {best:?}");
        let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
        ensure!(least <= best && best < most, "{to} greeted after {best:?}");
    }
    Ok(())
}

#[tokio::test]
async fn in_scoped_mode_the_default_port_waits_for_nobody() -> Result<()> {
    let stage = Stage::set(Mode::Scoped).await?;
    let caller = stage.caller();
    for to in [at(ONE, 18081), at(ONE_V6, 18081), at(MANY, 18081), at(SIX, 18081)] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let say = async move { client::say(to, b"hi", 2).await };
            let (echoed, took) = caller.pod.run(say).await?;
            ensure!(echoed == b"hi", "{to}: {echoed:?}");
            best = best.min(took);
        }
        ensure!(best < Duration::from_millis(300), "{to} answered after {best:?}");
    }
    // The default port of the mixed one is HTTP.
    let answer = caller.get(at(MIXED, 18081), "mixed.shop").await?;
    ensure!(answer.text() == "web", "{answer:?}");
    // TLS to an HTTP service is refused.
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03";
    let say = async move { Ok(client::say(at(MIXED, 18081), hello, 1).await) };
    if let Ok((answer, _)) = caller.pod.run(say).await? {
        // In plain HTTP, as any HTTP server answers TLS.
        ensure!(answer == b"H", "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn two_hundred_megabytes_arrive_whole_in_each_direction() -> Result<()> {
    let stage = Stage::set(Mode::All).await?;
    let start = Instant::now();
    let push = async { client::push(at(MANY, 9002), LARGE).await };
    let pushed = stage.caller().pod.run(push).await?;
    let there = start.elapsed();
    let start = Instant::now();
    let pull = async { client::pull(at(MANY, 9003)).await };
    let pulled = stage.caller().pod.run(pull).await?;
    eprintln!("200 MB there in {there:?}, back in {:?}", start.elapsed());
    // Both are the same noise, whose checksum the sender has computed before it was sent.
    ensure!(pushed == pulled && pushed.length == LARGE, "{pushed:?} and {pulled:?}");
    Ok(())
}
