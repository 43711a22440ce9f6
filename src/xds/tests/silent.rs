//! Clients that open, subscribe and vanish without a word.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use futures::StreamExt;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::super::connection::serve;
use super::super::peer::Peer;
use super::super::{Limits, Server, Store};
use super::wire::{subscribe, world};
use super::world::CDS;

const CLIENTS: usize = 5_000;

/// A connection that may fall silent: it is open, and nothing comes or goes.
struct Line {
    io: DuplexStream,
    silent: Arc<AtomicBool>,
}

impl Line {
    fn io(&mut self) -> Option<Pin<&mut DuplexStream>> {
        (!self.silent.load(Relaxed)).then(|| Pin::new(&mut self.io))
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io().map_or(Poll::Pending, |io| io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io().map_or(Poll::Pending, |io| io.poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().map_or(Poll::Pending, |io| io.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().map_or(Poll::Pending, |io| io.poll_shutdown(cx))
    }
}

/// A client that has its first answer. What it returns must be kept: dropped, it says goodbye.
async fn client(line: Line) -> impl Sized {
    let io = TokioIo::new(line);
    let handshake =
        hyper::client::conn::http2::Builder::new(TokioExecutor::new()).handshake(io).await;
    let (mut send, connection) = handshake.unwrap();
    let mut connection = Box::pin(connection);
    let message: DeltaDiscoveryRequest = subscribe(CDS, &[]);
    let mut body = vec![0];
    body.extend(u32::try_from(message.encoded_len()).unwrap().to_be_bytes());
    message.encode(&mut body).unwrap();
    // The stream stays open: a body that comes to no end.
    let body = StreamBody::new(
        futures::stream::iter([Ok::<_, std::io::Error>(Frame::data(Bytes::from(body)))])
            .chain(futures::stream::pending()),
    );
    let request = http::Request::post(
        "http://a/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    );
    let request = request.header("content-type", "application/grpc").body(body).unwrap();
    let ask = async {
        let mut response = send.send_request(request).await.unwrap();
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert!(frame.data_ref().is_some_and(|data| !data.is_empty()));
        response
    };
    let response = tokio::select! {
        response = ask => response,
        ended = connection.as_mut() => panic!("{ended:?}"),
    };
    (connection, send, response)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s25_five_thousand_that_vanish_without_a_word_leave_nothing() {
    let store = Store::default();
    world().publish(&store);
    let (ping, pong) = (Duration::from_secs(1), Duration::from_secs(10));
    let limits = Limits { ping, pong, ..Limits::default() };
    let server = Server::new(&store, "aether/test", Arc::new(|_| Ok(()))).limits(limits);
    let shared = server.shared();
    let before = Arc::strong_count(&shared);
    let tasks = tokio_util::task::TaskTracker::new();
    let mut clients = Vec::with_capacity(CLIENTS);
    let silent = Arc::new(AtomicBool::new(false));
    for _ in 0..CLIENTS {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let seat = shared.room.connection(None).unwrap();
        let peer = Peer { word: "silent".into(), proven: None };
        tasks.spawn(serve(theirs, peer, seat, None, shared.clone(), Duration::ZERO));
        clients.push(client(Line { io: ours, silent: silent.clone() }).await);
    }
    let stats = server.stats();
    let open = || (stats.connections.load(Relaxed), stats.streams.load(Relaxed));
    assert_eq!(open(), (CLIENTS as u64, CLIENTS as u64));
    // Their connections stay open, and nothing comes of them any more. They are asked whether they
    // live, and given up when they do not answer.
    silent.store(true, Relaxed);
    for _ in 0..300 {
        if open() == (0, 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(open(), (0, 0));
    tasks.close();
    tasks.wait().await;
    assert_eq!(Arc::strong_count(&shared), before, "nothing refers to what they had");
    drop(clients);
}
