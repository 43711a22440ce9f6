//! HTTP/1.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::backend::{Reply, noise};
use it::client::{Answer, Http1};
use it::wire::{Framing, Message};
use tokio::time::timeout;

use super::Seen;
use crate::exact::{Part, View};
use crate::stage::{Caller, HTTP1, STRANGER, Target};

const BIG: usize = 8 << 20;
const WIDE: usize = 32 << 10;
const OK: &str = "HTTP/1.1 200 OK\r\n";

/// What the backend answers, told by the path. Where nothing else is said it sends back what came.
pub fn script(request: &Message) -> Reply {
    match request.head.start_line().split(' ').nth(1).unwrap_or_default() {
        "/slow" => {
            let late = format!("{OK}content-length: 4\r\n\r\nslow");
            Reply::empty().pause(Duration::from_secs(20)).then(late)
        }
        "/503" => Reply::raw("HTTP/1.1 503 Mine\r\nX-Own: 1\r\ncontent-length: 5\r\n\r\nmine\n"),
        "/cut" => Reply::raw(format!("{OK}content-length: 9\r\n\r\nabc")).close(),
        "/wide" => {
            let sent = request.head.field("x-wide").unwrap_or_default();
            Reply::raw(format!("{OK}X-Wide: {sent}\r\ncontent-length: 0\r\n\r\n"))
        }
        "/drops" => {
            let reply = Reply::raw(format!("{OK}transfer-encoding: chunked\r\n\r\n"));
            let after = Duration::from_millis(500);
            let reply = (0..3).fold(reply, |reply, _| reply.then("4\r\ndrop\r\n").pause(after));
            reply.then("0\r\nx-end: of it\r\n\r\n")
        }
        _ => Reply::ok([&request.body[..], &request.trailers.0].concat()),
    }
}

/// An answer by its bytes, without the one field that may be added.
fn lines(answer: &Answer) -> Seen {
    let mut part = Part::of(&answer.message);
    part.fields.retain(|field| !field.is("date"));
    let interim = answer.interim.iter().map(Part::head).collect();
    View { interim, answer: Ok(part), ..View::default() }.lines()
}

async fn connect(target: Target, caller: Caller) -> Result<Http1> {
    Http1::connect(target.at(caller, HTTP1)).await
}

fn get(target: Target, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", target.hosts[0]).into()
}

/// Many requests on one connection, with bodies of both framings and trailers, and a pause that is longer than the
/// proxy keeps its own connection to the backend.
pub async fn kept(target: Target, caller: Caller) -> Result<Seen> {
    let host = target.hosts[0];
    let mut http = connect(target, caller).await?;
    let mut seen = Seen::new();
    for n in 0..30 {
        let body = "x".repeat(n);
        let length =
            format!("POST /{n} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {n}\r\n\r\n{body}");
        seen.extend(lines(&http.exchange(length.as_bytes()).await?));
        let chunks = format!(
            "PUT /{n} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nTrailer: x-t\r\n\r\n\
             3\r\nabc\r\n0\r\nx-t: {n}\r\n\r\n"
        );
        seen.extend(lines(&http.exchange(chunks.as_bytes()).await?));
        if n % 10 == 9 {
            tokio::time::sleep(Duration::from_millis(1700)).await;
        }
    }
    Ok(seen)
}

/// Three requests at once on one connection: the answers come in their order.
pub async fn pipelined(target: Target, caller: Caller) -> Result<Seen> {
    let mut http = connect(target, caller).await?;
    let mut seen = Seen::new();
    let all = [get(target, "/drops"), get(target, "/503"), get(target, "/")].concat();
    http.wire().write(&all).await?;
    for _ in 0..3 {
        seen.extend(lines(&http.answer().await?));
    }
    Ok(seen)
}

/// Requests of HTTP/1.0, which end their connections.
pub async fn old(target: Target, caller: Caller) -> Result<Seen> {
    let host = target.hosts[0];
    let mut seen = Seen::new();
    // A service is found by its name; what names none goes where the connection was going.
    let nameless = (target == STRANGER).then(|| "GET / HTTP/1.0\r\n\r\n".to_owned());
    let named = [
        format!("GET /drops HTTP/1.0\r\nHost: {host}\r\n\r\n"),
        format!("POST / HTTP/1.0\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nold"),
    ];
    for request in named.into_iter().chain(nameless) {
        let mut http = connect(target, caller).await?;
        let answer = http.exchange(request.as_bytes()).await?;
        // That the version and the framing differ is on the list; what is said is the same.
        seen.push(format!("{} {}", answer.status()?, answer.text().replace("\r\n", "|")));
        let ends = timeout(Duration::from_secs(5), http.wire().something()).await;
        ensure!(!ends.context("the connection was kept")??, "more than an answer came");
    }
    Ok(seen)
}

/// The body is sent only when the backend asks for it.
pub async fn expect(target: Target, caller: Caller) -> Result<Seen> {
    let host = target.hosts[0];
    let mut http = connect(target, caller).await?;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    );
    http.wire().write(head.as_bytes()).await?;
    let asked = timeout(Duration::from_secs(10), http.wire().head()).await;
    let asked = asked.context("nobody asked for the body")??.context("closed")?;
    http.wire().write(b"body").await?;
    let mut seen = vec![asked.start_line()];
    seen.extend(lines(&http.answer().await?));
    Ok(seen)
}

/// A body of 8 MB there and back, with each framing.
pub async fn big(target: Target, caller: Caller) -> Result<Seen> {
    let host = target.hosts[0];
    // Before the connection: one that is silent for a second goes its own way.
    let body = noise::bytes(BIG);
    let mut http = connect(target, caller).await?;
    let mut seen = Seen::new();
    for framing in [format!("Content-Length: {BIG}"), "Transfer-Encoding: chunked".to_owned()] {
        let mut request =
            format!("POST / HTTP/1.1\r\nHost: {host}\r\n{framing}\r\n\r\n").into_bytes();
        if framing.starts_with('T') {
            for chunk in body.chunks(1 << 20) {
                request.extend(format!("{:x}\r\n", chunk.len()).bytes());
                request.extend(chunk);
                request.extend(b"\r\n");
            }
            request.extend(b"0\r\n\r\n");
        } else {
            request.extend(&body);
        }
        let answer = http.exchange(&request).await?;
        ensure!(answer.message.body == body, "another body came back");
        seen.push(format!("{} {:?}", answer.status()?, answer.message.framing));
    }
    Ok(seen)
}

/// A field of 32 kB there and back.
pub async fn wide(target: Target, caller: Caller) -> Result<Seen> {
    let wide = "w".repeat(WIDE);
    let host = target.hosts[0];
    let request = format!("GET /wide HTTP/1.1\r\nHost: {host}\r\nX-Wide: {wide}\r\n\r\n");
    let answer = connect(target, caller).await?.exchange(request.as_bytes()).await?;
    ensure!(answer.field("x-wide") == Some(wide), "another field came back");
    Ok(lines(&answer))
}

/// An answer in pieces, each of which arrives when it is sent.
pub async fn drops(target: Target, caller: Caller) -> Result<Seen> {
    let answer = connect(target, caller).await?.exchange(&get(target, "/drops")).await?;
    let between = answer.took.saturating_sub(answer.first_byte);
    ensure!(between > Duration::from_secs(1), "held back: all came within {between:?}");
    ensure!(answer.message.framing == Framing::Chunked, "{answer:?}");
    Ok(lines(&answer))
}

/// An answer that ends before its length: an error, and not a shorter answer.
pub async fn cut(target: Target, caller: Caller) -> Result<Seen> {
    let mut http = connect(target, caller).await?;
    let error = http.exchange(&get(target, "/cut")).await.err().context("it was whole")?;
    Ok(vec![format!("{error:#}")])
}

/// An answer that takes 20 s to begin.
pub async fn slow(target: Target, caller: Caller) -> Result<Seen> {
    let answer = connect(target, caller).await?.exchange(&get(target, "/slow")).await?;
    let begun = answer.first_byte.as_secs_f32();
    ensure!((20.0..22.0).contains(&begun), "it began after {begun} s");
    Ok(lines(&answer))
}
