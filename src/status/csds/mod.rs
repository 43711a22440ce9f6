//! CSDS: what each proxy has, resource by resource, as the server sees it (statement 31).

mod config;
mod matcher;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use envoy_types::pb::envoy::service::status::v3::client_status_discovery_service_server::{
    ClientStatusDiscoveryService, ClientStatusDiscoveryServiceServer as Server,
};
use envoy_types::pb::envoy::service::status::v3::{ClientStatusRequest, ClientStatusResponse};
use futures::{Stream, StreamExt};
use tokio::sync::{Semaphore, watch};
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

pub(super) use config::{Room, client};
pub(super) use matcher::Wanted;

use crate::xds::{Clients, Snapshot};

/// The most bytes of one answer. `grpcurl` reads as much with `-max-msg-sz`.
pub(super) const LARGEST: usize = 16 << 20;

/// How many answers are made at a time.
const AT_A_TIME: usize = 2;

/// The largest request that is read, in bytes.
const LARGEST_REQUEST: usize = 1 << 20;

/// The service. Cheap to clone.
#[derive(Clone)]
pub(super) struct Csds {
    clients: Arc<Clients>,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    turns: Arc<Semaphore>,
}

impl Csds {
    pub(super) fn new(
        clients: Arc<Clients>,
        snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    ) -> Self {
        Self { clients, snapshots, turns: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Answers a request for one of its methods.
    pub(super) async fn answer(&self, request: http::Request<Body>) -> http::Response<Body> {
        let mut server = Server::new(self.clone()).max_decoding_message_size(LARGEST_REQUEST);
        let answered: Result<_, Infallible> = server.call(request).await;
        answered.unwrap_or_else(|never| match never {})
    }

    /// What each client that is asked for has.
    async fn status(&self, request: ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
        let wanted = Wanted::of(&request.node_matchers)?;
        // It is never closed.
        let turn = self.turns.clone().acquire_owned().await;
        let this = self.clone();
        let made = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            this.response(&wanted, !request.exclude_resource_contents)
        });
        made.await.map_err(|error| Status::internal(error.to_string()))?
    }

    fn response(&self, wanted: &Wanted, contents: bool) -> Result<ClientStatusResponse, Status> {
        let newest = self.snapshots.borrow().clone();
        let mut room = Room::new(LARGEST);
        let configs = self.clients.configs(newest.as_ref(), |node| wanted.matches(node));
        let config = configs.map(|(report, configs)| client(&report, configs, contents, &mut room));
        Ok(ClientStatusResponse { config: config.collect::<Result<_, _>>()? })
    }
}

#[tonic::async_trait]
impl ClientStatusDiscoveryService for Csds {
    type StreamClientStatusStream =
        Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;

    async fn stream_client_status(
        &self,
        request: Request<Streaming<ClientStatusRequest>>,
    ) -> Result<Response<Self::StreamClientStatusStream>, Status> {
        let this = self.clone();
        let answers = request.into_inner().then(move |request| {
            let this = this.clone();
            async move { this.status(request?).await }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn fetch_client_status(
        &self,
        request: Request<ClientStatusRequest>,
    ) -> Result<Response<ClientStatusResponse>, Status> {
        self.status(request.into_inner()).await.map(Response::new)
    }
}
