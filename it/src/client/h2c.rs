//! An HTTP/2 client that knows its peer (no TLS, no upgrade).

use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::PATIENCE;

/// An answer.
#[derive(Debug, Clone)]
pub struct H2Answer {
    /// Its status code.
    pub status: StatusCode,
    /// Its fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Its trailers, where it had any.
    pub trailers: Option<HeaderMap>,
}

/// A connection.
#[derive(Debug)]
pub struct H2c {
    send: SendRequest<Full<Bytes>>,
    _connection: AbortOnDropHandle<()>,
}

impl H2c {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await?;
        let stream = stream.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let mut client = Builder::new(TokioExecutor::new());
        // The library's 16 kB would be a limit of the rig's own.
        client.max_header_list_size(1 << 20);
        let (send, connection) = client.handshake(TokioIo::new(stream)).await?;
        // How it ended shows in the requests that are on it.
        let connection = tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok(Self { send, _connection: AbortOnDropHandle::new(connection) })
    }

    /// Sends a request and reads its answer. The URI's authority becomes `:authority`.
    pub async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<H2Answer> {
        let exchange = async {
            let (head, body) = self.send.send_request(request).await?.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().cloned();
            let (status, headers) = (head.status, head.headers);
            Ok(H2Answer { status, headers, body: body.to_bytes(), trailers })
        };
        timeout(PATIENCE, exchange).await.context("no answer")?
    }

    /// A plain GET of an absolute URI.
    pub async fn get(&mut self, uri: &str) -> Result<H2Answer> {
        self.exchange(Request::get(uri).body(Full::default())?).await
    }
}
