//! The messages of a stream's requests, cut out of the body as it comes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::Body;
use tonic::{Code, Status};

use super::limits::Metered;

#[cfg(test)]
mod tests;

/// A flag and four bytes of length stand before each message (gRPC over HTTP/2).
const HEAD: usize = 5;

/// The gRPC messages of a body. Each is a copy of just its bytes: a slice would keep the whole
/// buffer alive that the socket was read into, for as long as names in it are subscribed to.
pub(super) struct Inbound<B = Metered> {
    body: B,
    /// What has come and was not looked at yet.
    come: Bytes,
    /// The head of the message under way, and how many bytes of it are there.
    head: [u8; HEAD],
    headed: usize,
    /// What is there of the message under way.
    message: Vec<u8>,
}

impl<B: Body<Data = Bytes, Error = Status> + Unpin> Inbound<B> {
    /// The messages of a body that yields no more than its limits let it.
    pub(super) fn new(body: B) -> Self {
        Self { body, come: Bytes::new(), head: [0; HEAD], headed: 0, message: Vec::new() }
    }

    /// The next message; `None` at the end of the body. Nothing is lost where the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            if let Some(message) = self.cut()? {
                return Poll::Ready(Ok(Some(message)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => self.come = frame.into_data().unwrap_or_default(),
                // A client that resets the stream ends it.
                Some(Err(status)) if status.code() == Code::Cancelled => {
                    return Poll::Ready(Ok(None));
                }
                Some(Err(status)) => return Poll::Ready(Err(status)),
                None if self.headed == 0 => return Poll::Ready(Ok(None)),
                None => {
                    let words = "the stream of requests ends within a request";
                    return Poll::Ready(Err(Status::internal(words)));
                }
            }
        }
    }

    /// Cuts a message off what has come, if the last of its bytes is there.
    fn cut(&mut self) -> Result<Option<Bytes>, Status> {
        while self.headed < HEAD {
            let Some(slot) = self.head.get_mut(self.headed).filter(|_| self.come.has_remaining())
            else {
                return Ok(None);
            };
            *slot = self.come.get_u8();
            self.headed += 1;
        }
        let [flag, length @ ..] = self.head;
        if flag != 0 {
            // Without `grpc-encoding`, which no stream comes here with, nothing may be.
            let words = format!("a request has the flag {flag}: requests must not be compressed");
            return Err(Status::internal(words));
        }
        let length = u32::from_be_bytes(length) as usize;
        if self.message.capacity() == 0 {
            self.message.reserve_exact(length);
        }
        let more = (length - self.message.len()).min(self.come.len());
        self.message.extend_from_slice(&self.come.split_to(more));
        if self.message.len() < length {
            return Ok(None);
        }
        self.headed = 0;
        Ok(Some(std::mem::take(&mut self.message).into()))
    }
}
