//! A stream with its effects: it reads requests, watches the store and the clock, asks the state
//! machine what to send, and hands out the bytes when the connection can take them.
//!
//! There is no task and no queue: the body of the HTTP response is the stream. While the client
//! does not read, nothing is asked of it, so it holds the snapshot that it last saw and one buffer,
//! hears the newest snapshot when it reads again, and delays nobody (statement 24). When the
//! connection ends, in whatever way, the body is dropped and all of it with it (statement 25).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::canary::Seat;
use super::encode::Encoder;
use super::heard::{Fault, Heard, OnRefusal, Refusal};
use super::request::Request;
use super::session::{Session, Standing};
use super::stats::{Open, Stats};
use super::{Snapshot, Store};

/// How many requests are read before they are answered, where as many came at once.
const BATCH: usize = 64;

/// A stream of either protocol.
pub(super) struct Live<R> {
    pub(super) session: Session,
    pub(super) requests: Streaming<R>,
    pub(super) store: Store,
    pub(super) snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The stream's place among those that may be canaries.
    pub(super) seat: Option<Seat>,
    pub(super) stop: CancellationToken,
    pub(super) stats: Arc<Stats>,
    pub(super) on_refusal: OnRefusal,
    pub(super) control_plane: Arc<str>,
    pub(super) peer: Arc<str>,
    pub(super) out: VecDeque<Encoder>,
    pub(super) ended: bool,
    /// What was last said of the node.
    pub(super) standing: Option<Standing>,
    pub(super) _open: Open,
}

impl<R: Into<Request> + Send + 'static> Live<R> {
    /// The stream as the body of a response.
    pub(super) fn body(self) -> tonic::body::Body {
        let frames = futures::stream::unfold(self, |mut live| async move {
            let frame = live.frame().await?;
            Some((Ok::<_, Infallible>(frame), live))
        });
        tonic::body::Body::new(http_body_util::StreamBody::new(Box::pin(frames)))
    }

    /// The next frame; `None` after the trailers.
    async fn frame(&mut self) -> Option<Frame<Bytes>> {
        loop {
            if let Some(bytes) = self.out.front_mut().map(Encoder::next) {
                if let Some(bytes) = bytes {
                    return Some(Frame::data(bytes));
                }
                self.out.pop_front();
                continue;
            }
            if self.ended {
                return None;
            }
            match self.decide() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(status) => return Some(self.end(&status)),
            }
            if let Err(status) = self.hear().await {
                return Some(self.end(&status));
            }
        }
    }

    /// Asks the state machine what to send; whether it was anything.
    fn decide(&mut self) -> Result<bool, Status> {
        for response in self.session.drive(Instant::now()) {
            let encoder = Encoder::new(&response, &self.control_plane).ok_or_else(|| {
                let kind = response.type_url.as_ref();
                Status::resource_exhausted(format!("all of {kind} is more than a message holds"))
            })?;
            if let Some(kind) = response.kind {
                self.stats.responses.add(kind, 1);
                self.stats.bytes.add(kind, encoder.left() as u64);
            }
            tracing::trace!(
                node = self.session.node(),
                kind = %response.type_url,
                nonce = response.nonce,
                resources = response.resources.len(),
                removed = response.removed.len(),
                bytes = encoder.left(),
                "response"
            );
            self.out.push_back(encoder);
        }
        let settled = self.seat.as_ref().zip(self.session.settled(Instant::now()));
        if let Some((seat, generation)) = settled {
            seat.settled(generation);
        }
        Ok(!self.out.is_empty())
    }

    /// Waits for something to happen. An error ends the stream, and may be `Ok`.
    async fn hear(&mut self) -> Result<(), Status> {
        let deadline = self.session.deadline(Instant::now());
        let sleep = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let rung = async {
            match &self.seat {
                Some(seat) => seat.rung().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Status::unavailable("shutting down")),
            request = self.requests.message() => {
                self.heard(request)?;
                // A client that connects again sends all its requests at once.
                for _ in 0..BATCH {
                    match self.requests.message().now_or_never() {
                        Some(request) => self.heard(request)?,
                        None => break,
                    }
                }
            }
            changed = self.snapshots.changed() => if changed.is_err() {
                return Err(Status::unavailable("shutting down"));
            },
            () = rung => {}
            () = sleep => {}
        }
        let released = self.snapshots.borrow_and_update().clone();
        let newest = self.seat.as_ref().map_or(released, Seat::offered);
        if let Some(newest) = newest {
            self.session.snapshot(newest);
        }
        self.note();
        Ok(())
    }

    /// Says once when the node comes to wait, and when that is over. To be served is no news.
    fn note(&mut self) {
        let now = self.session.standing();
        let before = std::mem::replace(&mut self.standing, now);
        if before == now {
            return;
        }
        let (node, peer) = (self.session.node().unwrap_or_default(), &self.peer);
        match now {
            Some(Standing::Waiting) => {
                tracing::info!(node, %peer, "the proxy waits: its node is not known, or not managed");
            }
            Some(Standing::Forgotten) => {
                tracing::info!(node, %peer, "the proxy's node is gone, or not managed any more: it keeps what it has, and waits");
            }
            Some(Standing::Served) if before.is_some() => {
                tracing::info!(node, %peer, "the proxy waits no more: its node is known");
            }
            Some(Standing::Served) | None => {}
        }
    }

    fn heard(&mut self, request: Result<Option<R>, Status>) -> Result<(), Status> {
        // The client's end of the stream is its end of ours.
        let request: Request = request?.ok_or_else(|| Status::ok(""))?.into();
        self.stats.requests.fetch_add(1, Relaxed);
        let url = request.type_url.clone();
        tracing::trace!(node = self.session.node(), kind = url, nonce = request.nonce, "request");
        let sent_from = self.session.generation();
        let heard = self.session.request(request, Instant::now());
        if self.seat.is_none() {
            self.seat = self.session.node.as_ref().and_then(|node| self.store.seat(node));
        }
        match heard {
            Ok(Heard::Fine) => Ok(()),
            Ok(Heard::Refused(refusal)) => {
                self.stats.nacks.add(refusal.kind, 1);
                self.tell(&refusal);
                let seat = self.seat.as_ref().filter(|_| !self.session.tries_again(refusal.kind));
                if let (Some(seat), Some(generation)) = (seat, sent_from) {
                    seat.refused(generation, &refusal);
                }
                (self.on_refusal)(self.session.node().unwrap_or_default(), &refusal);
                Ok(())
            }
            Ok(Heard::Unknown) => {
                self.stats.unknown_types.fetch_add(1, Relaxed);
                let node = self.session.node().unwrap_or_default();
                tracing::debug!(node, peer = %self.peer, type_url = url, "a type that is not served");
                Ok(())
            }
            Err(fault) => {
                if matches!(fault, Fault::Node { .. }) {
                    self.stats.refused_nodes.fetch_add(1, Relaxed);
                }
                tracing::info!(peer = %self.peer, "stream refused: {fault}");
                Err(Status::invalid_argument(fault.to_string()))
            }
        }
    }

    /// Says once that a response was refused; a client that repeats itself is not repeated.
    fn tell(&self, refusal: &Refusal) {
        let node = self.session.node().unwrap_or_default();
        let Refusal { kind, words, names, repeated } = refusal;
        let names = names.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
        let kind = kind.type_url();
        if *repeated {
            tracing::debug!(node, peer = %self.peer, kind, names, "refused again: {words}");
        } else {
            tracing::warn!(node, peer = %self.peer, kind, names, "the proxy refused it: {words}");
        }
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.ended = true;
        self.out.clear();
        Frame::trailers(trailers(status))
    }
}

/// A status as trailers. Envoy logs its message as it is on the wire, so only what must be is
/// escaped there (by gRPC's rule: what is not printable ASCII, and `%`), and not spaces and quotes
/// as well.
fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", HeaderValue::from_static("13"));
    }
    let mut message = String::with_capacity(status.message().len());
    for byte in status.message().bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => message.push(byte.into()),
            _ => message.extend(format!("%{byte:02X}").chars()),
        }
    }
    if !message.is_empty()
        && let Ok(message) = HeaderValue::try_from(message)
    {
        trailers.insert("grpc-message", message);
    }
    trailers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Status, trailers};

    #[test]
    fn a_message_can_be_read_on_the_wire_and_is_the_same_behind_it() {
        for (message, wire) in [
            ("the id \"a b\" is <none>", "the id \"a b\" is <none>"),
            ("100% é\n", "100%25 %C3%A9%0A"),
        ] {
            let trailers = trailers(&Status::invalid_argument(message));
            assert_eq!(trailers.get("grpc-message").unwrap(), wire);
            assert_eq!(trailers.get("grpc-status").unwrap(), "3");
            assert_eq!(Status::from_header_map(&trailers).unwrap().message(), message);
        }
        assert!(trailers(&Status::ok("")).get("grpc-message").is_none());
    }
}
