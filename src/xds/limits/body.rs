//! The body of a stream's requests, which waits for room before it takes in a large one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http_body::{Body, Frame};
use http_body_util::BodyStream;
use tokio::time::{Instant, Sleep};
use tonic::Status;

use super::Denial;
use super::room::{Connection, Taken};

/// Up to this many bytes a request is read as it comes: it is one frame.
const SMALL: usize = 16 << 10;

/// A body of gRPC messages. Its errors are the statuses by which the stream ends.
pub(in crate::xds) struct Metered {
    body: Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, Status>> + Send>>,
    connection: Arc<Connection>,
    framing: Framing,
    /// Until when what is awaited must have come.
    deadline: Option<(Pin<Box<Sleep>>, Denial)>,
    waiting: Option<BoxFuture<'static, Option<Taken>>>,
    taken: Option<Taken>,
    /// A frame that waits for the room of the request that begins in it.
    held: Option<Frame<Bytes>>,
}

impl Metered {
    pub(in crate::xds) fn new<B>(body: B, connection: Arc<Connection>) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let first = tokio::time::sleep(connection.room.limits.first);
        let frames = BodyStream::new(body)
            .map(|frame| frame.map_err(|error| Status::from_error(error.into())));
        Self {
            body: Box::pin(frames),
            connection,
            framing: Framing::default(),
            deadline: Some((Box::pin(first), Denial::First)),
            waiting: None,
            taken: None,
            held: None,
        }
    }

    fn refuse(&self, reason: Denial) -> Status {
        let room = &self.connection.room;
        room.stats.refused.add(reason);
        reason.status(&room.limits)
    }

    /// Takes note of a frame; an error where a request in it is too large.
    fn note(&mut self, data: &Bytes) -> Result<(), Status> {
        if data.is_empty() {
            return Ok(());
        }
        let largest = self.connection.room.limits.request;
        let begun = self.framing.feed(data.clone());
        if self.framing.largest > largest {
            return Err(self.refuse(Denial::Size));
        }
        if self.framing.between() {
            self.deadline = None;
            return Ok(());
        }
        let slow = self.connection.room.limits.slow;
        let first = self.deadline.as_ref().is_some_and(|(_, why)| *why == Denial::First);
        if begun || first || self.deadline.is_none() {
            self.deadline = Some((Box::pin(tokio::time::sleep(slow)), Denial::Slow));
        }
        if begun && self.framing.length > SMALL {
            // What was there is decoded by now, or is a part of a frame.
            self.taken = None;
            self.waiting = Some(self.connection.clone().request(self.framing.length).boxed());
        }
        Ok(())
    }
}

impl Body for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(waiting) = &mut this.waiting {
                this.taken = ready!(waiting.poll_unpin(cx));
                this.waiting = None;
                // To have waited for others is nobody's slowness.
                if let Some((sleep, _)) = &mut this.deadline {
                    sleep.as_mut().reset(Instant::now() + this.connection.room.limits.slow);
                }
            }
            if let Some(frame) = this.held.take() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if this.framing.between() {
                // Whoever asks for more has read what was complete.
                this.taken = None;
            }
            match this.body.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.data_ref().cloned().unwrap_or_default();
                    this.note(&data)?;
                    this.held = Some(frame);
                }
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending => {
                    let Some((sleep, reason)) = &mut this.deadline else { return Poll::Pending };
                    ready!(sleep.as_mut().poll(cx));
                    let reason = *reason;
                    this.deadline = None;
                    return Poll::Ready(Some(Err(this.refuse(reason))));
                }
            }
        }
    }
}

/// Where in a series of gRPC messages the bytes are: a flag, four bytes of length, the message.
#[derive(Debug, Default)]
struct Framing {
    /// Bytes of a header that has begun.
    header: usize,
    /// The length of the message that is being received.
    length: usize,
    /// What is to come of it.
    left: usize,
    /// The longest message whose header was seen.
    largest: usize,
}

impl Framing {
    /// Whether no message is under way.
    fn between(&self) -> bool {
        self.left == 0 && self.header == 0
    }

    /// Goes through bytes; whether a message has begun in them that does not end in them.
    fn feed(&mut self, mut data: Bytes) -> bool {
        let mut begun = false;
        while data.has_remaining() {
            if self.left > 0 {
                let some = self.left.min(data.remaining());
                data.advance(some);
                self.left -= some;
                continue;
            }
            let byte = usize::from(data.get_u8());
            self.length = if self.header == 0 { 0 } else { self.length << 8 | byte };
            self.header += 1;
            if self.header == 5 {
                self.header = 0;
                self.left = self.length;
                self.largest = self.largest.max(self.length);
                begun = true;
            }
        }
        begun && self.left > 0
    }
}
