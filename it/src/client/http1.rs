//! An HTTP/1 client that sends the bytes it is given and shows those that came.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;
use crate::wire::{Head, Message, Wire};

/// An answer and what came before it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The 1xx answers before it.
    pub interim: Vec<Head>,
    /// The answer.
    pub message: Message,
    /// From the start of sending to its first byte (1xx included).
    pub first_byte: Duration,
    /// From the start of sending to its end.
    pub took: Duration,
}

impl Answer {
    /// Its status code.
    pub fn status(&self) -> Result<u16> {
        self.message.head.status()
    }

    /// Its first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<String> {
        self.message.head.field(name)
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.message.body).into_owned()
    }
}

/// A connection.
#[derive(Debug)]
pub struct Http1 {
    wire: Wire<TcpStream>,
}

impl Http1 {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await?;
        let stream = stream.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { wire: Wire::new(stream) })
    }

    /// The connection underneath, to send in pieces or to read after an upgrade.
    pub fn wire(&mut self) -> &mut Wire<TcpStream> {
        &mut self.wire
    }

    /// The stream and what was read beyond the last answer, after an upgrade or a CONNECT.
    pub fn into_parts(self) -> (TcpStream, Vec<u8>) {
        self.wire.into_parts()
    }

    /// Sends a request, whole, and reads its answer. The connection can be used again.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        let start = Instant::now();
        let to_head = request.starts_with(b"HEAD ");
        let exchange = async {
            self.wire.write(request).await?;
            self.answer_since(start, to_head).await
        };
        timeout(PATIENCE, exchange).await.context("no answer")?
    }

    /// Reads the answer to what was sent through [`Self::wire`].
    pub async fn answer(&mut self) -> Result<Answer> {
        timeout(PATIENCE, self.answer_since(Instant::now(), false)).await.context("no answer")?
    }

    async fn answer_since(&mut self, start: Instant, to_head: bool) -> Result<Answer> {
        self.wire.something().await?;
        let first_byte = start.elapsed();
        let mut interim = Vec::new();
        loop {
            let Some(head) = self.wire.head().await? else {
                bail!("the connection was closed instead of an answer");
            };
            // 101 is the last word of HTTP on a connection, not one before the answer.
            if matches!(head.status()?, 100 | 102..=199) {
                interim.push(head);
                continue;
            }
            let message = self.wire.answer_body(head, to_head).await?;
            return Ok(Answer { interim, message, first_byte, took: start.elapsed() });
        }
    }
}

/// Sends a request on a connection of its own.
pub async fn request(address: SocketAddr, request: &[u8]) -> Result<Answer> {
    Http1::connect(address).await?.exchange(request).await
}

/// A plain GET on a connection of its own.
pub async fn get(address: SocketAddr, host: &str, path: &str) -> Result<Answer> {
    request(address, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await
}
