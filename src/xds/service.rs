//! The gRPC methods, by path: the aggregated service and that of each type, in both protocols.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::{BoxFuture, Either};
use http::{HeaderValue, Method as HttpMethod, StatusCode, header::CONTENT_TYPE};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;

use super::beside::Beside;
use super::clients::Clients;
use super::heard::{Admit, OnRefusal};
use super::inbound::Inbound;
use super::lately::Lately;
use super::leave::Leave;
use super::limits::{Connection, Denial, Metered, Room, StreamSeat};
use super::peer::{Gate, Peer, Vouch};
use super::request::Protocol;
use super::session::Session;
use super::stats::{Open, Stats};
use super::stream::Live;
use super::{Kind, Store};

/// What all streams share.
#[derive(Clone)]
pub struct Shared {
    /// The `control_plane.identifier` of every response: name and version of this program.
    pub control_plane: Arc<str>,
    /// Which nodes may connect.
    pub admit: Admit,
    /// Which peers may speak for which node, where they prove who they are.
    pub vouch: Vouch,
    /// Who hears of refusals.
    pub on_refusal: OnRefusal,
    /// What peers have taken, and may take.
    pub(super) room: Arc<Room>,
    /// What was said lately of connections.
    pub(super) lately: Arc<Lately>,
    /// The counters.
    pub stats: Arc<Stats>,
    /// The snapshots that are served.
    pub store: Store,
    /// Ends all streams.
    pub stop: CancellationToken,
    /// The streams that are open.
    pub clients: Arc<Clients>,
    /// Other services on the same addresses.
    pub(super) beside: Beside,
}

/// All discovery services, for one connection.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
    peer: Peer,
    connection: Arc<Connection>,
    leave: Leave,
}

impl Service {
    /// The services for a connection from `peer`, whose streams end when they are told to leave.
    pub(super) fn new(
        shared: Arc<Shared>,
        peer: Peer,
        connection: Arc<Connection>,
        leave: Leave,
    ) -> Self {
        Self { shared, peer, connection, leave }
    }

    /// Answers a request; the answer begins at once and goes on as long as the stream.
    fn answer<B>(&self, request: http::Request<B>) -> Answered
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let grpc = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !grpc.is_some_and(|value| value.starts_with(b"application/grpc")) {
            return at_once(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        if request.method() != HttpMethod::POST {
            return at_once(plain(StatusCode::METHOD_NOT_ALLOWED));
        }
        let encoding = request.headers().get("grpc-encoding").map(HeaderValue::as_bytes);
        if encoding.is_some_and(|encoding| encoding != b"identity") {
            let status = Status::unimplemented("requests must not be compressed");
            return at_once(status.into_http());
        }
        let seat = match self.connection.stream() {
            Ok(seat) => seat,
            Err(reason) => return at_once(self.refuse(reason).into_http()),
        };
        let Some((protocol, only)) = method(request.uri().path()) else {
            let body = |body| Body::new(Metered::new(body, self.connection.clone()));
            let caller = self.peer.caller();
            let (request, leave) = (request.map(body), self.leave.clone());
            return Either::Right(self.shared.beside.call(request, caller, seat, leave));
        };
        let session = Session::new(protocol, only, self.shared.admit.clone());
        let body = self.live(session, protocol, seat, request.into_body()).body();
        let mut response = http::Response::new(body);
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        at_once(response)
    }

    /// Counts a refusal, and says it.
    fn refuse(&self, reason: Denial) -> Status {
        self.shared.stats.refused.add(reason);
        let words = reason.words(&self.shared.room.limits);
        tracing::info!(peer = %self.peer.word, "stream refused: {words}");
        reason.status(&self.shared.room.limits)
    }

    fn live<B>(&self, session: Session, protocol: Protocol, taken: StreamSeat, body: B) -> Live
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Live {
            place: self.shared.clients.enter(session, self.peer.word.clone()),
            protocol,
            requests: Inbound::new(Metered::new(body, self.connection.clone())),
            store: self.shared.store.clone(),
            snapshots: self.shared.store.subscribe(),
            seat: None,
            leave: self.leave.clone(),
            gate: Gate::new(&self.peer, &self.shared.vouch),
            taken,
            stats: self.shared.stats.clone(),
            on_refusal: self.shared.on_refusal.clone(),
            control_plane: self.shared.control_plane.clone(),
            out: VecDeque::new(),
            leaving: false,
            ended: false,
            standing: None,
            asked: false,
            _open: Open::stream(&self.shared.stats),
        }
    }
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.answer(request)
    }
}

/// An answer that is there at once, as that of every stream is, or one of another service.
type Answered = Either<
    Ready<Result<http::Response<Body>, Infallible>>,
    BoxFuture<'static, Result<http::Response<Body>, Infallible>>,
>;

fn at_once(response: http::Response<Body>) -> Answered {
    Either::Left(ready(Ok(response)))
}

fn plain(status: StatusCode) -> http::Response<Body> {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The protocol and the type of a method, `None` in place of the type for the aggregated service.
/// The unary `Fetch…` methods are not served: nobody polls a mesh.
fn method(path: &str) -> Option<(Protocol, Option<Kind>)> {
    let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
    let (only, noun) = match service {
        "discovery.v3.AggregatedDiscoveryService" => (None, "AggregatedResources"),
        "cluster.v3.ClusterDiscoveryService" => (Some(Kind::Cluster), "Clusters"),
        "endpoint.v3.EndpointDiscoveryService" => (Some(Kind::Endpoints), "Endpoints"),
        "listener.v3.ListenerDiscoveryService" => (Some(Kind::Listener), "Listeners"),
        "route.v3.RouteDiscoveryService" => (Some(Kind::Routes), "Routes"),
        "route.v3.VirtualHostDiscoveryService" => (Some(Kind::VirtualHost), "VirtualHosts"),
        _ => return None,
    };
    let protocol = match method.strip_suffix(noun)? {
        "Stream" if only != Some(Kind::VirtualHost) => Protocol::Sotw,
        "Delta" => Protocol::Delta,
        _ => return None,
    };
    Some((protocol, only))
}

#[cfg(test)]
mod tests {
    use super::{Kind, Protocol, method};

    #[test]
    fn s01_every_method_has_its_path() {
        let kinds = [
            ("cluster.v3.ClusterDiscoveryService", "Clusters", Kind::Cluster),
            ("endpoint.v3.EndpointDiscoveryService", "Endpoints", Kind::Endpoints),
            ("listener.v3.ListenerDiscoveryService", "Listeners", Kind::Listener),
            ("route.v3.RouteDiscoveryService", "Routes", Kind::Routes),
        ];
        for (service, noun, kind) in kinds {
            let path = |verb: &str| format!("/envoy.service.{service}/{verb}{noun}");
            assert_eq!(method(&path("Stream")), Some((Protocol::Sotw, Some(kind))));
            assert_eq!(method(&path("Delta")), Some((Protocol::Delta, Some(kind))));
            assert_eq!(method(&path("Fetch")), None);
        }
        let ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService";
        let sotw = format!("{ads}/StreamAggregatedResources");
        assert_eq!(method(&sotw), Some((Protocol::Sotw, None)));
        let delta = format!("{ads}/DeltaAggregatedResources");
        assert_eq!(method(&delta), Some((Protocol::Delta, None)));
        let vhds = "/envoy.service.route.v3.VirtualHostDiscoveryService";
        let delta = format!("{vhds}/DeltaVirtualHosts");
        assert_eq!(method(&delta), Some((Protocol::Delta, Some(Kind::VirtualHost))));
        assert_eq!(method(&format!("{vhds}/StreamVirtualHosts")), None);
        assert_eq!(method("/envoy.service.discovery.v3.AggregatedDiscoveryService"), None);
        assert_eq!(method("/"), None);
    }
}
