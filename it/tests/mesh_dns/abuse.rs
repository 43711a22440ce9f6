//! Those who mean no good, or know no better.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

use super::stage::{RESOLVER, SOON, Stage, without_upstream};

fn query(name: &str) -> Result<Vec<u8>> {
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(Name::from_ascii(name)?, RecordType::A));
    Ok(query.to_vec()?)
}

fn framed(message: &[u8]) -> Result<Vec<u8>> {
    Ok([&u16::try_from(message.len())?.to_be_bytes()[..], message].concat())
}

async fn answer(stream: &mut TcpStream) -> Result<Message> {
    let length = timeout(SOON, stream.read_u16()).await.context("no answer")??;
    let mut bytes = vec![0; length.into()];
    timeout(SOON, stream.read_exact(&mut bytes)).await.context("half an answer")??;
    Ok(Message::from_vec(&bytes)?)
}

async fn connect() -> Result<TcpStream> {
    Ok(TcpStream::connect(RESOLVER.parse::<SocketAddr>()?).await?)
}

/// How long until the server ends the connection.
async fn ends(stream: &mut TcpStream, limit: Duration) -> Result<Duration> {
    let begun = Instant::now();
    let mut rest = Vec::new();
    match timeout(limit, stream.read_to_end(&mut rest)).await {
        Ok(_) => Ok(begun.elapsed()),
        Err(_) => bail!("still open after {limit:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tcp_in_any_pieces_and_many_questions_on_one_connection() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    stage
        .node
        .run(async {
            // Byte by byte, the length split too.
            let mut stream = connect().await?;
            stream.set_nodelay(true)?;
            for byte in framed(&query("cart.shop.aether.internal.")?)? {
                stream.write_all(&[byte]).await?;
                sleep(Duration::from_millis(2)).await;
            }
            ensure!(answer(&mut stream).await?.answers.len() == 1);
            // Many at once, of both kinds; the answers may come in any order.
            let mut all = Vec::new();
            for n in 0..100 {
                let name =
                    if n % 2 == 0 { "cart.shop.aether.internal." } else { "stranger.example." };
                all.extend(framed(&query(name)?)?);
            }
            stream.write_all(&all).await?;
            for _ in 0..100 {
                ensure!(answer(&mut stream).await?.answers.len() == 1);
            }
            // A client that has said all that it wants still gets its answer.
            let mut stream = connect().await?;
            stream.write_all(&framed(&query("other.shop.svc.cluster.local.")?)?).await?;
            stream.shutdown().await?;
            ensure!(answer(&mut stream).await?.queries.len() == 1);
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn tcp_clients_that_dawdle_are_let_go_and_nobody_else_pays() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    stage
        .node
        .run(async {
            let mut silent = connect().await?;
            let mut half = connect().await?;
            half.write_all(&[0]).await?;
            let mut partial = connect().await?;
            partial.write_all(&framed(&query("cart.shop.aether.internal.")?)?[..20]).await?;
            let mut garbage = connect().await?;
            garbage.write_all(&[0, 3, 1, 2, 3]).await?;
            let mut empty = connect().await?;
            empty.write_all(&[0, 0]).await?;
            ensure!(ends(&mut garbage, SOON).await? < Duration::from_secs(1));
            ensure!(ends(&mut empty, SOON).await? < Duration::from_secs(1));
            ensure!(ends(&mut half, SOON).await? < Duration::from_secs(4));
            ensure!(ends(&mut partial, SOON).await? < Duration::from_secs(4));
            // The first and last of those who sit there saying nothing.
            let mut crowd = Vec::new();
            for _ in 0..400 {
                crowd.push(connect().await?);
            }
            let mut stream = connect().await;
            if let Ok(stream) = &mut stream {
                // One address has only so many seats; beyond them the connection is closed.
                let _ = stream.write_all(&framed(&query("cart.shop.aether.internal.")?)?).await;
                ensure!(answer(stream).await.is_err(), "a seat more than there are");
            }
            let got = it::client::ask(RESOLVER.parse()?, "cart.shop.aether.internal", false, SOON)
                .await?;
            ensure!(got.took < Duration::from_millis(500), "{got:?}");
            let silence = ends(&mut silent, Duration::from_secs(15)).await?;
            ensure!(silence > Duration::from_secs(2), "{silence:?}");
            drop(crowd);
            sleep(Duration::from_millis(500)).await;
            let mut stream = connect().await?;
            stream.write_all(&framed(&query("cart.shop.aether.internal.")?)?).await?;
            ensure!(answer(&mut stream).await?.answers.len() == 1);
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_counts_for_as_long_as_an_answer_is_owed_on_it() -> Result<()> {
    let (node, _names, _resolver) = without_upstream().await?;
    let asks = async {
        let mut owed = Vec::new();
        for _ in 0..128 {
            let mut stream = connect().await?;
            stream.write_all(&framed(&query("nobody.example.")?)?).await?;
            stream.shutdown().await?;
            owed.push(stream);
        }
        sleep(Duration::from_millis(200)).await;
        let mut more = connect().await?;
        let _ = more.write_all(&framed(&query("cart.shop.aether.internal.")?)?).await;
        ensure!(answer(&mut more).await.is_err(), "a seat more than there are");
        for stream in &mut owed {
            ends(stream, Duration::from_secs(15)).await?;
        }
        let mut stream = connect().await?;
        stream.write_all(&framed(&query("cart.shop.aether.internal.")?)?).await?;
        ensure!(answer(&mut stream).await?.answers.len() == 1);
        Ok(())
    };
    node.run(asks).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_odd_packets_costs_neither_answers_nor_memory() -> Result<()> {
    let mut stage = Stage::set(&[]).await?;
    let before = stage.resolver.resident()?;
    let sent = stage.node.run(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.connect(RESOLVER.parse::<SocketAddr>()?).await?;
        let good = query("cart.shop.aether.internal.")?;
        let mut random = fastrand::Rng::with_seed(7);
        let (begun, mut sent) = (Instant::now(), 0_u64);
        let mut answer = [0; 4096];
        while begun.elapsed() < Duration::from_secs(3) {
            let mut packet = good.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..packet.len());
                packet[at] = random.u8(..);
            }
            match random.u8(..8) {
                0 => packet.truncate(random.usize(..packet.len())),
                1 => packet.extend((0..random.usize(..1200)).map(|_| random.u8(..))),
                2 => packet = (0..random.usize(..1400)).map(|_| random.u8(..)).collect(),
                // Different names, which all go upstream.
                3 => packet = query(&format!("{}.example.", random.u64(..)))?,
                _ => {}
            }
            // What is not wanted is refused, and the next one is sent.
            let _ = socket.send(&packet).await;
            while let Ok(length) = socket.try_recv(&mut answer) {
                // No answer is larger than a datagram that passes everywhere.
                ensure!(length <= 1232, "{length} bytes");
            }
            sent += 1;
            if sent % 50 == 0 {
                let name = "cart.shop.aether.internal";
                let got = it::client::ask(RESOLVER.parse()?, name, false, SOON).await?;
                ensure!(got.addresses.len() == 1, "{got:?}");
            }
        }
        Ok(sent)
    });
    let sent = sent.await?;
    stage.resolver.process().must_run()?;
    let after = stage.resolver.resident()?;
    eprintln!("{sent} odd packets; {before} kB resident before and {after} kB after");
    ensure!(sent > 1_000, "{sent}");
    ensure!(after < before + 64_000, "{before} kB before and {after} kB after");
    ensure!(!stage.resolver.log().contains("panicked"), "{}", stage.resolver.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_is_sent_to_tcp_beyond_its_rate() -> Result<()> {
    let stage = Stage::set(&["--rate-limit", "10"]).await?;
    let cut = stage.node.run(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.connect(RESOLVER.parse::<SocketAddr>()?).await?;
        let (mut cut, mut answer) = (0, [0; 2000]);
        for _ in 0..100 {
            socket.send(&query("cart.shop.aether.internal.")?).await?;
            let length = timeout(SOON, socket.recv(&mut answer)).await.context("lost")??;
            let answer = Message::from_vec(&answer[..length])?;
            ensure!(answer.metadata.truncation == answer.answers.is_empty(), "{answer}");
            cut += usize::from(answer.metadata.truncation);
        }
        Ok(cut)
    });
    let cut = cut.await?;
    ensure!((60..=95).contains(&cut), "{cut} of 100 were cut");
    // Without +ignore, dig goes on over TCP as resolvers do.
    for _ in 0..30 {
        let dug = stage.dig("cart.shop.aether.internal A")?;
        ensure!(dug.contains("10.96.0.7"), "{dug}");
    }
    Ok(())
}
