//! A gRPC backend, `aether.it.Echo`: unary and all kinds of streaming. It is small enough to do without a .proto file.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use super::{Backend, Counts, serve};
use crate::net::Netns;

/// What the service speaks of.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Note {
    /// Any text.
    #[prost(string, tag = "1")]
    pub text: String,
    /// Any number.
    #[prost(uint32, tag = "2")]
    pub number: u32,
}

impl Note {
    /// A note.
    pub fn new(text: impl Into<String>, number: u32) -> Self {
        Self { text: text.into(), number }
    }
}

/// Says a note back (`Say`), joins a stream of them (`Gather`), repeats one (`Spread`), and says each of a stream back
/// at once (`Chat`). A note whose text is `fail` is answered by FAILED_PRECONDITION.
pub async fn grpc(netns: &Netns, address: SocketAddr) -> Result<Backend> {
    serve(netns, address, |stream, counts| async move {
        let service = TowerToHyperService::new(Echo { counts });
        let server = http2::Builder::new(TokioExecutor::new());
        Ok(server.serve_connection(TokioIo::new(stream), service).await?)
    })
    .await
}

#[derive(Debug, Clone)]
struct Echo {
    counts: Arc<Counts>,
}

type Answer = std::result::Result<http::Response<Body>, Infallible>;

impl Service<http::Request<hyper::body::Incoming>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<hyper::body::Incoming>) -> Self::Future {
        self.counts.request();
        async move {
            let mut grpc = Grpc::new(ProstCodec::<Note, Note>::default());
            Ok(match request.uri().path() {
                "/aether.it.Echo/Say" => grpc.unary(service_fn(say), request).await,
                "/aether.it.Echo/Gather" => {
                    grpc.client_streaming(service_fn(gather), request).await
                }
                "/aether.it.Echo/Spread" => {
                    grpc.server_streaming(service_fn(spread), request).await
                }
                "/aether.it.Echo/Chat" => grpc.streaming(service_fn(chat), request).await,
                other => Status::unimplemented(other.to_owned()).into_http(),
            })
        }
        .boxed()
    }
}

type Notes = BoxStream<'static, Result<Note, Status>>;

async fn say(request: Request<Note>) -> Result<Response<Note>, Status> {
    let note = request.into_inner();
    if note.text == "fail" {
        return Err(Status::failed_precondition("asked to fail"));
    }
    Ok(Response::new(note))
}

async fn gather(request: Request<Streaming<Note>>) -> Result<Response<Note>, Status> {
    let mut notes = request.into_inner();
    let mut all = Note::default();
    while let Some(note) = notes.message().await? {
        all.text.push_str(&note.text);
        all.number = all.number.wrapping_add(note.number);
    }
    Ok(Response::new(all))
}

async fn spread(request: Request<Note>) -> Result<Response<Notes>, Status> {
    let note = request.into_inner();
    let times = usize::try_from(note.number).unwrap_or(usize::MAX);
    Ok(Response::new(stream::repeat(Ok(note)).take(times).boxed()))
}

async fn chat(request: Request<Streaming<Note>>) -> Result<Response<Notes>, Status> {
    Ok(Response::new(request.into_inner().boxed()))
}
