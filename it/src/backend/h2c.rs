//! An HTTP/2 backend without TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, request};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{Backend, Counts, serve};
use crate::net::Netns;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct H2Recorded {
    /// Method, URI with authority, and fields.
    pub head: request::Parts,
    /// Its body.
    pub body: Bytes,
    /// Its trailers, where it had any.
    pub trailers: Option<HeaderMap>,
}

type Script = dyn Fn(&H2Recorded) -> Response<BoxBody<Bytes, Infallible>> + Send + Sync;

/// The backend. It keeps the requests.
#[derive(Debug)]
pub struct H2Backend {
    backend: Backend,
    recorded: Arc<Mutex<Vec<H2Recorded>>>,
}

impl H2Backend {
    /// Answers each request as `script` says.
    pub async fn start(
        netns: &Netns,
        address: SocketAddr,
        script: impl Fn(&H2Recorded) -> Response<BoxBody<Bytes, Infallible>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (recorded.clone(), Arc::new(script));
        let handle = move |stream, counts: Arc<Counts>| {
            let (kept, script) = (kept.clone(), script.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (kept, script) = (kept.clone(), script.clone());
                counts.request();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await?;
                    let trailers = body.trailers().cloned();
                    let request = H2Recorded { head, body: body.to_bytes(), trailers };
                    let answer = script(&request);
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    Ok::<_, hyper::Error>(answer)
                }
            });
            let mut server = http2::Builder::new(TokioExecutor::new());
            // The library's 16 kB would be a limit of the rig's own.
            server.max_header_list_size(1 << 20);
            async move { Ok(server.serve_connection(TokioIo::new(stream), service).await?) }
        };
        Ok(Self { backend: serve(netns, address, handle).await?, recorded })
    }

    /// Answers every request with 200 and this name.
    pub async fn named(netns: &Netns, address: SocketAddr, name: &str) -> Result<Self> {
        let name = Bytes::from(name.to_owned());
        Self::start(netns, address, move |_| Response::new(Full::new(name.clone()).boxed())).await
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
    pub fn take(&self) -> Vec<H2Recorded> {
        std::mem::take(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
