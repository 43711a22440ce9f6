//! What a stream makes of its client's requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use tonic::Status;

use super::Live;
use crate::xds::clients::{State, beginning};
use crate::xds::heard::{Fault, Heard};
use crate::xds::message::{Unread, read};
use crate::xds::{Request, words};

/// How many bytes of a refusal's words are read.
const WORDS: usize = 64 << 10;

impl Live {
    /// Reads a message, if it holds no more than it may.
    fn request(&self, message: &Bytes) -> Result<Request, Status> {
        read(self.protocol, message, self.taken.limits()).map_err(|unread| match unread {
            Unread::Malformed(why) => Status::internal(why.to_string()),
            Unread::Denied(reason) => {
                let (status, state) = (self.taken.refuse(reason), self.place.lock());
                words::refused(state.session.node(), self.place.peer(), status.message());
                status
            }
        })
    }

    /// Takes in what came; `None` is the client's end of the stream.
    pub(super) fn heard(&mut self, message: Result<Option<Bytes>, Status>) -> Result<(), Status> {
        let Some(message) = message? else {
            // The client's end of the stream is its end of ours.
            self.leaving = true;
            return Ok(());
        };
        let mut request = self.request(&message)?;
        self.stats.requests.fetch_add(1, Relaxed);
        self.asked = true;
        if let Some(words) = request.error.as_mut().filter(|words| words.len() > WORDS) {
            *words = beginning(words, WORDS).to_owned();
        }
        let mut state = self.place.lock();
        let State { session, ledger } = &mut *state;
        let url = request.type_url.clone();
        let refuses = request.error.is_some();
        let nonce: Option<u64> = request.nonce.parse().ok();
        tracing::trace!(node = session.node(), kind = url, nonce = request.nonce, "request");
        let heard = session.request(request, Instant::now());
        if let Err(reason) = self.taken.names(session.names()) {
            let status = self.taken.refuse(reason);
            words::refused(session.node(), self.place.peer(), status.message());
            return Err(status);
        }
        if self.seat.is_none() {
            self.seat = session.node.as_ref().and_then(|node| self.store.seat(node));
        }
        match heard {
            Ok(Heard::Fine) => {
                let nonce = nonce.filter(|_| !refuses);
                let accepted = nonce.and_then(|nonce| ledger.accepted(nonce, SystemTime::now()));
                if let Some((kind, Some(since))) = accepted {
                    self.stats.to_ack.observe(kind, since.elapsed());
                }
                Ok(())
            }
            Ok(Heard::Refused(refusal)) => {
                if let Some(nonce) = nonce {
                    ledger.refused(nonce, &refusal, SystemTime::now());
                }
                self.stats.nacks.add(refusal.kind, 1);
                let node: Arc<str> = session.node.clone().unwrap_or_default();
                let tries_again = session.tries_again(refusal.kind);
                drop(state);
                words::refusal(&node, self.place.peer(), &refusal);
                if let Some(seat) = self.seat.as_ref().filter(|_| !tries_again) {
                    seat.refused(&refusal);
                }
                (self.on_refusal)(&node, &refusal);
                Ok(())
            }
            Ok(Heard::Unknown) => {
                self.stats.unknown_types.fetch_add(1, Relaxed);
                let node = session.node().unwrap_or_default();
                let peer = self.place.peer();
                tracing::debug!(node, %peer, type_url = url, "a type that is not served");
                Ok(())
            }
            Err(fault) => {
                if matches!(fault, Fault::Node { .. }) {
                    self.stats.refused_nodes.fetch_add(1, Relaxed);
                }
                let words = fault.to_string();
                words::refused(None, self.place.peer(), &words);
                Err(Status::invalid_argument(words))
            }
        }
    }
}
