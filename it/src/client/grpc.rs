//! A client of the rig's gRPC service.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoRequest, IntoStreamingRequest, Status, Streaming};
use tonic_prost::ProstCodec;

use super::PATIENCE;
use crate::backend::Note;

/// A channel to one address, whatever the authority says.
#[derive(Debug, Clone)]
pub struct GrpcClient {
    inner: Grpc<Channel>,
}

impl GrpcClient {
    /// Connects; `authority` is what the requests bear.
    pub async fn connect(address: SocketAddr, authority: &str) -> Result<Self> {
        let endpoint =
            Endpoint::from_shared(format!("http://{authority}"))?.connect_timeout(PATIENCE);
        let connect = move |_| async move { TcpStream::connect(address).await.map(TokioIo::new) };
        let channel = endpoint.connect_with_connector(tower::service_fn(connect)).await;
        let channel = channel.with_context(|| format!("connecting to {address}"))?;
        Ok(Self { inner: Grpc::new(channel) })
    }

    /// Unary: the note comes back.
    pub async fn say(&mut self, note: Note) -> Result<Note, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/aether.it.Echo/Say");
        Ok(self.inner.unary(note.into_request(), path, codec()).await?.into_inner())
    }

    /// Client streaming: the texts come back joined, the numbers added.
    pub async fn gather(&mut self, notes: Vec<Note>) -> Result<Note, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/aether.it.Echo/Gather");
        let notes = futures::stream::iter(notes).into_streaming_request();
        Ok(self.inner.client_streaming(notes, path, codec()).await?.into_inner())
    }

    /// Server streaming: the note comes back `number` times.
    pub async fn spread(&mut self, note: Note) -> Result<Vec<Note>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/aether.it.Echo/Spread");
        let notes = self.inner.server_streaming(note.into_request(), path, codec()).await?;
        notes.into_inner().collect::<Vec<_>>().await.into_iter().collect()
    }

    /// Both directions: each note comes back at once.
    pub async fn chat(
        &mut self,
        notes: impl Stream<Item = Note> + Send + 'static,
    ) -> Result<Streaming<Note>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/aether.it.Echo/Chat");
        Ok(self.inner.streaming(notes.into_streaming_request(), path, codec()).await?.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.inner.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }
}

fn codec() -> ProstCodec<Note, Note> {
    ProstCodec::default()
}
