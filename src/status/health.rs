//! `grpc.health.v1`, by its protocol: `Check` refuses a service that is not known, `Watch` says
//! that it is not and goes on.

use futures::{StreamExt, stream};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::Status;
use tonic::body::Body;

use super::{SERVICES, grpc};

/// Whether the server serves: not before it has something to serve, and not when it is stopping.
/// Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Serving(watch::Sender<bool>);

impl Default for Serving {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Serving {
    /// Says that it serves from now on, or no more.
    pub fn set(&self, serving: bool) {
        self.0.send_replace(serving);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}

/// `HealthCheckRequest`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Request {
    /// A service, or nothing for the server as a whole.
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// `HealthCheckResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Response {
    #[prost(enumeration = "Verdict", tag = "1")]
    pub(super) status: i32,
}

/// `HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ::prost::Enumeration)]
#[repr(i32)]
pub(super) enum Verdict {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

fn verdict(serving: bool) -> Response {
    let verdict = if serving { Verdict::Serving } else { Verdict::NotServing };
    Response { status: verdict.into() }
}

/// All services serve as the server does.
fn known(service: &str) -> bool {
    service.is_empty() || SERVICES.contains(&service)
}

/// The method `Check`.
pub(super) async fn check(
    serving: watch::Receiver<bool>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    let answer = |Request { service }: Request| {
        if known(&service) {
            return Ok(verdict(*serving.borrow()));
        }
        Err(Status::not_found(format!("no service {service:?} here: reflection lists them")))
    };
    grpc::unary(request, answer).await
}

/// The method `Watch`.
pub(super) async fn watch(
    serving: watch::Receiver<bool>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    let answers = |Request { service }: Request| {
        if known(&service) {
            let verdicts = WatchStream::new(serving.clone()).map(|serving| Ok(verdict(serving)));
            return verdicts.boxed();
        }
        let unknown = Response { status: Verdict::ServiceUnknown.into() };
        stream::iter([Ok(unknown)]).chain(stream::pending()).boxed()
    };
    grpc::answers(request, answers).await
}
