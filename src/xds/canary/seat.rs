//! A stream's place among those that may be chosen as canaries.

use std::sync::Arc;

use tokio::sync::Notify;

use super::super::store::Shelf;
use super::super::{Refusal, Snapshot};

/// Held by a stream as long as it lives; dropped, the stream is chosen no more.
pub(in super::super) struct Seat {
    id: u64,
    shelf: Arc<Shelf>,
    bell: Arc<Notify>,
}

impl Seat {
    /// The seat of a stream that is known to the shelf.
    pub(in super::super) fn new(id: u64, shelf: Arc<Shelf>, bell: Arc<Notify>) -> Self {
        Self { id, shelf, bell }
    }

    /// Done when the stream is offered another snapshot than it was, as a canary.
    pub(in super::super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// The snapshot that is offered to this stream.
    pub(in super::super) fn offered(&self) -> Option<Arc<Snapshot>> {
        self.shelf.offered(self.id)
    }

    /// Says that all of a snapshot was sent and accepted.
    pub(in super::super) fn settled(&self, generation: u64) {
        self.shelf.settled(self.id, generation);
    }

    /// Says that the client refused something of a snapshot.
    pub(in super::super) fn refused(&self, refusal: &Refusal) {
        self.shelf.refused(self.id, refusal);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shelf.left(self.id);
    }
}
