//! Other gRPC services on the addresses of the discovery services.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;

use super::trailers::trailers;

/// How many requests of other services are answered at a time, streams among them.
const AT_A_TIME: usize = 256;

/// Answers a request for a method that is none of the discovery services'.
pub type Answer =
    Arc<dyn Fn(http::Request<Body>) -> BoxFuture<'static, http::Response<Body>> + Send + Sync>;

/// The other services. Discovery streams never come here.
#[derive(Clone)]
pub(super) struct Beside {
    answer: Answer,
    room: Arc<Semaphore>,
}

impl Default for Beside {
    fn default() -> Self {
        Self::new(Arc::new(|request| {
            let path = request.uri().path();
            let status = Status::unimplemented(format!("no such method: {path}"));
            Box::pin(std::future::ready(status.into_http()))
        }))
    }
}

impl Beside {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, room: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Answers; the answer ends with `UNAVAILABLE` where it lasts until `stop`.
    pub(super) fn call(
        &self,
        request: http::Request<Body>,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<http::Response<Body>, Infallible>> {
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            let words = format!("{AT_A_TIME} requests are being answered: try again later");
            let full = Status::resource_exhausted(words).into_http();
            return Box::pin(std::future::ready(Ok(full)));
        };
        let answer = (self.answer)(request);
        Box::pin(async move {
            let answer = answer.await;
            Ok(answer.map(|body| {
                let stop = Box::pin(stop.cancelled_owned());
                Body::new(Ending { body, stop, ended: false, _room: room })
            }))
        })
    }
}

/// A body that ends when the server does.
struct Ending {
    body: Body,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
    _room: OwnedSemaphorePermit,
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        ready!(self.stop.as_mut().poll(cx));
        self.ended = true;
        let status = Status::unavailable("shutting down");
        Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}
