//! An HTTP/1 backend that keeps the bytes it got and answers with the bytes it was given.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpStream;

use super::{Backend, Counts, serve};
use crate::net::Netns;
use crate::wire::{Head, Message, Wire};

/// A request as it came.
pub type Recorded = Message;

/// What to answer: pieces in their order.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    Close,
}

impl Reply {
    /// These bytes: an answer whole, or its beginning.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes.into())] }
    }

    /// 200 with this body and its length.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let mut bytes =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend(body);
        Self::raw(bytes)
    }

    /// Nothing; pieces follow.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Then these bytes.
    pub fn then(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.pieces.push(Piece::Bytes(bytes.into()));
        self
    }

    /// Then this long nothing.
    pub fn pause(mut self, time: Duration) -> Self {
        self.pieces.push(Piece::Pause(time));
        self
    }

    /// Then the end of the connection.
    pub fn close(mut self) -> Self {
        self.pieces.push(Piece::Close);
        self
    }
}

type Script = dyn Fn(&Recorded) -> Reply + Send + Sync;

/// The backend. The first 10,000 requests are kept; all are counted.
#[derive(Debug)]
pub struct Http1Backend {
    backend: Backend,
    recorded: Arc<Mutex<Vec<Recorded>>>,
}

impl Http1Backend {
    /// Answers each request as `script` says. A request that expects 100-continue is told to before its body is read.
    pub async fn start(
        netns: &Netns,
        address: SocketAddr,
        script: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (recorded.clone(), Arc::new(script));
        let handle = move |stream, counts| talk(stream, counts, kept.clone(), script.clone());
        Ok(Self { backend: serve(netns, address, handle).await?, recorded })
    }

    /// Answers every request with 200 and this name, so that a client knows whom it reached.
    pub async fn named(netns: &Netns, address: SocketAddr, name: &str) -> Result<Self> {
        let name = name.to_owned();
        Self::start(netns, address, move |_| Reply::ok(name.clone())).await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.backend.address()
    }

    /// What it has seen.
    pub fn counts(&self) -> &Counts {
        self.backend.counts()
    }

    /// The requests so far, and forgets them.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes its port and every connection.
    pub async fn stop(self) {
        self.backend.stop().await;
    }
}

/// One connection, request after request.
async fn talk(
    stream: TcpStream,
    counts: Arc<Counts>,
    kept: Arc<Mutex<Vec<Recorded>>>,
    script: Arc<Script>,
) -> Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(head) = wire.head().await? {
        counts.request();
        let last = head.start_line().ends_with("HTTP/1.0") || says(&head, "connection", "close");
        if says(&head, "expect", "100-continue") {
            wire.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let request = wire.request_body(head).await?;
        let reply = script(&request);
        {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < 10_000 {
                kept.push(request);
            }
        }
        for piece in reply.pieces {
            match piece {
                Piece::Bytes(bytes) => wire.write(&bytes).await?,
                Piece::Pause(time) => tokio::time::sleep(time).await,
                Piece::Close => return wire.finish().await,
            }
        }
        if last {
            return wire.finish().await;
        }
    }
    Ok(())
}

fn says(head: &Head, name: &str, value: &str) -> bool {
    head.field(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
}
