//! Each protocol and each extreme once: the same function runs with and without capture, and has to see the same.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::backend::{Note, Reply, noise};
use it::client::{self, Answer, GrpcClient, Http1};
use it::wire::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_stream::wrappers::ReceiverStream;

use crate::exact::Part;
use crate::stage::{Caller, GRPC, HTTP1, Target, WS};

const BIG: usize = 8 << 20;
const WIDE: usize = 32 << 10;

/// What the HTTP/1.1 backend answers, told by the path.
pub fn script(request: &Message) -> Reply {
    let ok = "HTTP/1.1 200 OK\r\n";
    match request.head.start_line().split(' ').nth(1).unwrap_or_default() {
        "/slow" => {
            let late = format!("{ok}content-length: 4\r\n\r\nslow");
            Reply::empty().pause(Duration::from_secs(20)).then(late)
        }
        "/503" => Reply::raw("HTTP/1.1 503 Mine\r\nX-Own: 1\r\ncontent-length: 5\r\n\r\nmine\n"),
        "/cut" => Reply::raw(format!("{ok}content-length: 9\r\n\r\nabc")).close(),
        "/wide" => {
            Reply::raw(format!("{ok}X-Wide: {}\r\ncontent-length: 0\r\n\r\n", "w".repeat(WIDE)))
        }
        "/drip" => {
            let reply = Reply::raw(format!("{ok}transfer-encoding: chunked\r\n\r\n"));
            let drop = Duration::from_millis(20);
            let reply = (0..5).fold(reply, |reply, _| reply.then("4\r\ndrip\r\n").pause(drop));
            reply.then("0\r\nx-end: of it\r\n\r\n")
        }
        _ => Reply::ok([&request.body[..], &request.trailers.0].concat()),
    }
}

/// What a client saw, told in lines that can be compared.
type Seen = Vec<String>;

fn line(of: &str, answer: &Answer) -> String {
    let interim: Vec<_> = answer.interim.iter().map(it::wire::Head::start_line).collect();
    let mut part = Part::of(&answer.message);
    // The one field that may be added; its value is that of the clock.
    part.fields.retain(|field| !field.is("date"));
    format!("{of}: {interim:?} {part:?}")
}

/// HTTP/1.1 on one connection: bodies of every framing, in both directions.
pub async fn kept(target: Target, caller: Caller) -> Result<Seen> {
    let host = target.hosts[0];
    let mut http = Http1::connect(target.at(caller, HTTP1)).await?;
    let mut seen = Seen::new();
    for n in 0..50 {
        let request = format!("POST /{n} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{n:02}");
        seen.push(line("kept", &http.exchange(request.as_bytes()).await?));
    }
    let chunked = format!(
        "POST /t HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nTrailer: x-t\r\n\r\n3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n"
    );
    for _ in 0..2 {
        seen.push(line("trailers", &http.exchange(chunked.as_bytes()).await?));
        let get = format!("GET /drip HTTP/1.1\r\nHost: {host}\r\n\r\n");
        seen.push(line("drip", &http.exchange(get.as_bytes()).await?));
    }
    Ok(seen)
}
