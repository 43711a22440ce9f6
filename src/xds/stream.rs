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
use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt;
use http_body::Frame;
use tokio::sync::watch;
use tonic::Status;

use super::canary::Seat;
use super::clients::{Place, Sent};
use super::encode::{Encoder, next_of};
use super::heard::OnRefusal;
use super::inbound::Inbound;
use super::leave::Leave;
use super::limits::{Denial, StreamSeat};
use super::peer::Gate;
use super::request::Protocol;
use super::session::Standing;
use super::stats::{Open, Reason, Stats};
use super::trailers::trailers;
use super::{Snapshot, Store, words};

mod requests;

/// How many requests are read before they are answered, where as many came at once.
const BATCH: usize = 64;

/// A stream of either protocol.
pub(super) struct Live {
    /// Its state, which others may look at while nothing is being decided.
    pub(super) place: Place,
    pub(super) protocol: Protocol,
    pub(super) requests: Inbound,
    pub(super) store: Store,
    pub(super) snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The stream's place among those that may be canaries.
    pub(super) seat: Option<Seat>,
    pub(super) leave: Leave,
    pub(super) gate: Gate,
    /// The stream's part of what its peer may take.
    pub(super) taken: StreamSeat,
    pub(super) stats: Arc<Stats>,
    pub(super) on_refusal: OnRefusal,
    pub(super) control_plane: Arc<str>,
    pub(super) out: VecDeque<Encoder>,
    /// The client has said all that it will: what it asked for is sent, and no more.
    pub(super) leaving: bool,
    pub(super) ended: bool,
    /// Whether the client asked for something since the last decision.
    pub(super) asked: bool,
    /// What was last said of the node.
    pub(super) standing: Option<Standing>,
    pub(super) _open: Open,
}

impl Live {
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
            if let Some(bytes) = next_of(&mut self.out) {
                return Some(Frame::data(bytes));
            }
            if self.ended {
                return None;
            }
            match self.decide() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(status) => return Some(self.end(&status)),
            }
            if self.leaving {
                return Some(self.end(&Status::ok("")));
            }
            if let Err(status) = self.hear().await {
                return Some(self.end(&status));
            }
        }
    }

    /// Asks the state machine what to send; whether it was anything.
    fn decide(&mut self) -> Result<bool, Status> {
        let now = Instant::now();
        let mut state = self.place.lock();
        let before = state.session.generation();
        let responses = state.session.drive(now);
        let after = state.session.generation();
        // Only to another snapshot than the first does a change lead.
        let since = match (before, after) {
            (Some(before), Some(after)) if before < after && !responses.is_empty() => {
                self.store.since(before, after)
            }
            _ => None,
        };
        let asked = std::mem::take(&mut self.asked);
        let why = match (before == after, asked) {
            (false, _) => Reason::Change,
            (true, true) => Reason::Asked,
            (true, false) => Reason::Held,
        };
        for response in responses {
            let encoder = Encoder::new(&response, &self.control_plane).ok_or_else(|| {
                let kind = response.type_url.as_ref();
                Status::resource_exhausted(format!("all of {kind} is more than a message holds"))
            })?;
            if let Some(kind) = response.kind {
                let first = state.ledger.sent(kind, Sent::now(&response), since);
                self.stats.responses.add(kind, if first { Reason::First } else { why });
                self.stats.bytes.add(kind, encoder.left() as u64);
                if let Some(since) = since {
                    self.stats.to_push.observe(kind, now.duration_since(since));
                }
            }
            tracing::trace!(
                node = state.session.node(),
                kind = %response.type_url,
                nonce = response.nonce,
                resources = response.resources.len(),
                removed = response.removed.len(),
                bytes = encoder.left(),
                "response"
            );
            self.out.push_back(encoder);
        }
        // Without canaries nobody looks at every subscription.
        let seat = self.seat.as_ref();
        let settled = seat.and_then(|seat| Some((seat, state.session.settled(now)?)));
        drop(state);
        if let Some((seat, generation)) = settled {
            seat.settled(generation);
        }
        Ok(!self.out.is_empty())
    }

    /// Waits for something to happen. An error ends the stream, and may be `Ok`.
    async fn hear(&mut self) -> Result<(), Status> {
        let deadline = self.place.lock().session.deadline(Instant::now());
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
            status = self.leave.ended() => return Err(status),
            request = self.requests.next() => {
                self.heard(request)?;
                // A client that connects again sends all its requests at once.
                for _ in 0..BATCH {
                    if self.leaving {
                        break;
                    }
                    match self.requests.next().now_or_never() {
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
        self.pass(newest.as_deref())?;
        if let Some(newest) = newest {
            self.place.lock().session.snapshot(newest);
        }
        self.note();
        Ok(())
    }

    /// Checks that the peer may speak for the node: before anything is decided on a snapshot, since
    /// the next answer may be the first.
    fn pass(&mut self, newest: Option<&Snapshot>) -> Result<(), Status> {
        let state = self.place.lock();
        let node = state.session.node();
        self.gate.check(node, newest).inspect_err(|status| {
            words::refused(node, self.place.peer(), status.message());
            self.stats.refused.add(Denial::Identity);
        })
    }

    /// Says once when the node comes to wait, and when that is over.
    fn note(&mut self) {
        let state = self.place.lock();
        let now = state.session.standing();
        let before = std::mem::replace(&mut self.standing, now);
        if before != now {
            let node = state.session.node().unwrap_or_default();
            words::standing(node, self.place.peer(), before, now);
        }
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.ended = true;
        self.out.clear();
        Frame::trailers(trailers(status))
    }
}
