//! gRPC methods that are functions, without generated code.

use std::future::{Ready, ready};

use futures::{Stream, StreamExt};
use tonic::body::Body;
use tonic::server::{Grpc, ServerStreamingService, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// The largest request that is read, in bytes.
const LARGEST: usize = 64 << 10;

fn server<A, Q>() -> Grpc<ProstCodec<A, Q>>
where
    A: prost::Message + 'static,
    Q: prost::Message + Default + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(LARGEST)
}

struct Method<F>(F);

impl<Q, A, F: FnMut(Q) -> Result<A, Status>> UnaryService<Q> for Method<F> {
    type Response = A;
    type Future = Ready<Result<Response<A>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        ready((self.0)(request.into_inner()).map(Response::new))
    }
}

/// Answers one request by one answer.
pub(super) async fn unary<Q, A>(
    request: http::Request<Body>,
    method: impl FnMut(Q) -> Result<A, Status>,
) -> http::Response<Body>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + 'static,
{
    server().unary(Method(method), request).await
}

impl<Q, A, S, F> ServerStreamingService<Q> for Method<F>
where
    S: Stream<Item = Result<A, Status>>,
    F: FnMut(Q) -> S,
{
    type Response = A;
    type ResponseStream = S;
    type Future = Ready<Result<Response<S>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        ready(Ok(Response::new((self.0)(request.into_inner()))))
    }
}

/// Answers one request by any number of answers.
pub(super) async fn answers<Q, A, S>(
    request: http::Request<Body>,
    method: impl FnMut(Q) -> S,
) -> http::Response<Body>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
{
    server().server_streaming(Method(method), request).await
}

impl<Q, A, S, F> StreamingService<Q> for Method<F>
where
    S: Stream<Item = Result<A, Status>>,
    F: FnMut(Streaming<Q>) -> S,
{
    type Response = A;
    type ResponseStream = S;
    type Future = Ready<Result<Response<S>, Status>>;

    fn call(&mut self, request: Request<Streaming<Q>>) -> Self::Future {
        ready(Ok(Response::new((self.0)(request.into_inner()))))
    }
}

/// Answers each request of a stream in its turn.
pub(super) async fn stream<Q, A>(
    request: http::Request<Body>,
    method: impl Fn(Q) -> Result<A, Status> + Clone + Send + 'static,
) -> http::Response<Body>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + 'static,
{
    let each = move |requests: Streaming<Q>| {
        let method = method.clone();
        requests.map(move |request| request.and_then(&method))
    };
    server().streaming(Method(each), request).await
}
