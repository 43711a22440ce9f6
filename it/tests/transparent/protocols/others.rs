//! HTTP/2, gRPC and WebSocket.

use std::convert::Infallible;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use it::backend::{H2Recorded, Note, noise};
use it::client::{self, GrpcClient, H2c};
use tokio_stream::wrappers::ReceiverStream;
use tokio_tungstenite::tungstenite::Message;

use super::Seen;
use crate::stage::{Caller, GRPC, HTTP2, Target, WS};

const BIG: usize = 8 << 20;
const WIDE: usize = 32 << 10;

/// The HTTP/2 backend sends back what came, and a field as wide as the one that came.
pub fn script(request: &H2Recorded) -> Response<BoxBody<Bytes, Infallible>> {
    let mut answer = Response::new(Full::new(request.body.clone()).boxed());
    if let Some(wide) = request.head.headers.get("x-wide") {
        answer.headers_mut().insert("x-wide", wide.clone());
    }
    answer
}

/// Many streams at once on one connection, a body of 8 MB and a field of 32 kB.
pub async fn h2c(target: Target, caller: Caller) -> Result<Seen> {
    // Before the connection: one that is silent for a second goes its own way.
    let big = Bytes::from(noise::bytes(BIG));
    let mut h2c = H2c::connect(target.at(caller, HTTP2)).await?;
    let uri = format!("http://{}:{HTTP2}/", target.hosts[0]);
    let mut seen = Seen::new();
    for (n, body) in [Bytes::from_static(b"small"), big].into_iter().enumerate() {
        let request = Request::post(&uri).header("x-wide", "w".repeat(n * WIDE));
        let answer = h2c.exchange(request.body(Full::new(body.clone()))?).await?;
        ensure!(answer.body == body, "another body came back");
        let wide = answer.headers.get("x-wide").map_or(0, http::HeaderValue::len);
        seen.push(format!("{} {wide} {}", answer.status, answer.body.len()));
    }
    Ok(seen)
}

/// Every kind of call, and one that fails.
pub async fn grpc(target: Target, caller: Caller) -> Result<Seen> {
    let authority = format!("{}:{GRPC}", target.hosts[0]);
    let mut grpc = GrpcClient::connect(target.at(caller, GRPC), &authority).await?;
    let note = Note::new("hello", 3);
    let mut seen = vec![
        format!("{:?}", grpc.say(note.clone()).await?),
        format!("{:?}", grpc.gather((0..100).map(|n| Note::new("a", n)).collect()).await?),
        format!("{:?}", grpc.spread(Note::new("again", 1000)).await?),
    ];
    let failed = grpc.say(Note::new("fail", 0)).await.err().context("it did not fail")?;
    seen.push(format!("{:?} {:?}", failed.code(), failed.message()));
    // Many calls on the one connection at once.
    let calls = (0..100).map(|n| {
        let mut grpc = grpc.clone();
        async move { grpc.say(Note::new("at once", n)).await }
    });
    for note in futures::future::join_all(calls).await {
        seen.push(format!("{:?}", note?));
    }
    Ok(seen)
}

/// The next note goes only when the last one came back, with both directions open.
pub async fn chat(target: Target, caller: Caller) -> Result<Seen> {
    let authority = format!("{}:{GRPC}", target.hosts[0]);
    let mut grpc = GrpcClient::connect(target.at(caller, GRPC), &authority).await?;
    let (send, notes) = tokio::sync::mpsc::channel(1);
    let mut chat = grpc.chat(ReceiverStream::new(notes)).await?;
    let mut seen = Seen::new();
    for n in 0..50 {
        send.send(Note::new("chat", n)).await?;
        seen.push(format!("{:?}", chat.message().await?));
    }
    drop(send);
    seen.push(format!("{:?}", chat.message().await?));
    Ok(seen)
}

/// Texts and a large binary message there and back, and the closing words.
pub async fn websocket(target: Target, caller: Caller) -> Result<Seen> {
    let (address, host) = (target.at(caller, WS), format!("{}:{WS}", target.hosts[0]));
    let mut socket = client::websocket(address, &host, "/ws?x=1", &["one", "two"]).await?;
    let big = Message::binary(noise::bytes(1 << 20));
    socket.send(big.clone()).await?;
    let back = socket.next().await.context("closed")??;
    ensure!(back == big, "another message came back");
    socket.close(None).await?;
    let mut seen = Seen::new();
    while let Some(message) = socket.next().await {
        seen.push(format!("{:?}", message?));
    }
    Ok(seen)
}
