//! From packet to packet: what all sockets share.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use hickory_proto::op::{Message, ResponseCode};
use tracing::error;

use super::answer::{self, Decision, Forward, Outcome};
use super::cache::Key;
use super::limit::Limit;
use super::lookup::{Looked, Lookups};
use super::metrics::Metrics;
use super::query::{self, Packet, Proto, Query};
use super::response;
use super::seats::{Seat, Seats};
use super::table::Table;
use super::zone::Zone;

/// How many queries may wait for upstream at once, one client's being an eighth of them.
const WAITING: usize = 16_384;

/// Everything that answers queries.
#[derive(Debug)]
pub struct Engine {
    zone: Zone,
    table: Arc<ArcSwapOption<Table>>,
    lookups: Arc<Lookups>,
    limit: Limit,
    waiting: Arc<Seats>,
    metrics: Arc<Metrics>,
}

/// What is done about a packet.
#[derive(Debug)]
pub enum Step {
    /// This is sent back.
    Reply(Vec<u8>),
    /// [`Engine::finish`] has the answer later.
    Later(Box<Later>),
    /// Nothing is sent.
    Nothing,
}

/// A query that waits for upstream.
#[derive(Debug)]
pub struct Later {
    query: Query,
    forward: Forward,
    key: Key,
    proto: Proto,
    client: IpAddr,
    _seat: Seat,
}

impl Engine {
    /// Answers from the table that is there at the time, and forwards by `lookups`.
    pub fn new(
        zone: Zone,
        table: Arc<ArcSwapOption<Table>>,
        lookups: Lookups,
        limit: Limit,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (lookups, waiting) = (Arc::new(lookups), Seats::new(WAITING));
        Self { zone, table, lookups, limit, waiting, metrics }
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Takes a packet. A panic costs that packet alone: the thread that calls has a socket to
    /// serve.
    pub fn take(&self, packet: &[u8], proto: Proto, client: IpAddr) -> Step {
        let step = catch_unwind(AssertUnwindSafe(|| self.step(packet, proto, client)));
        step.unwrap_or_else(|_| {
            self.metrics.panicked();
            error!(%client, "a packet was handled in a way that it must not, and is dropped");
            Step::Nothing
        })
    }

    fn step(&self, packet: &[u8], proto: Proto, client: IpAddr) -> Step {
        let begun = Instant::now();
        let query = match query::read(packet) {
            Packet::Query(query) => query,
            Packet::Refused(refusal) => {
                let kind = refusal.question.as_ref().map(|question| question.query_type);
                self.metrics.query(Outcome::Malformed, proto, kind);
                let limit = response::limit(proto, refusal.edns);
                return reply(&response::refuse(&refusal), limit);
            }
            Packet::Silent => {
                self.metrics.query(Outcome::Dropped, proto, None);
                return Step::Nothing;
            }
        };
        let (kind, limit) = (query.question.query_type, response::limit(proto, query.edns));
        if proto == Proto::Udp && !self.limit.allows(client, begun) {
            // An honest client comes back over TCP; of a forged address not more is sent than
            // came.
            let mut message = response::to(&query);
            message.metadata.truncation = true;
            self.metrics.query(Outcome::Limited, proto, Some(kind));
            return reply(&message, limit);
        }
        match answer::decide(&query, proto, &self.zone, self.table.load().as_deref()) {
            Decision::Answer(outcome, message) => {
                let step = reply(&message, limit);
                self.metrics.query(outcome, proto, Some(kind));
                if matches!(outcome, Outcome::Mesh | Outcome::MeshNoData | Outcome::MeshNxDomain) {
                    self.metrics.mesh_answered(begun.elapsed());
                }
                step
            }
            Decision::Forward(forward) => self.forward(query, forward, proto, client),
        }
    }

    fn forward(&self, query: Query, forward: Forward, proto: Proto, client: IpAddr) -> Step {
        let key = key(&query, &forward);
        if let Some(looked) = self.lookups.at_hand(&key) {
            return self.looked(&query, &forward, proto, &looked);
        }
        let Some(seat) = self.waiting.take(client) else {
            let mut message = response::to(&query);
            message.metadata.response_code = ResponseCode::ServFail;
            let limit = response::limit(proto, query.edns);
            self.metrics.query(Outcome::Overload, proto, Some(query.question.query_type));
            return reply(&message, limit);
        };
        Step::Later(Box::new(Later { query, forward, key, proto, client, _seat: seat }))
    }

    /// Waits for upstream. What it returns is sent back; nothing where it cannot be encoded.
    pub async fn finish(&self, later: Later) -> Option<Vec<u8>> {
        let looked = self.lookups.ask(&later.key, later.client).await;
        match self.looked(&later.query, &later.forward, later.proto, &looked) {
            Step::Reply(bytes) => Some(bytes),
            Step::Later(_) | Step::Nothing => None,
        }
    }

    fn looked(&self, query: &Query, forward: &Forward, proto: Proto, looked: &Looked) -> Step {
        self.metrics.query(looked.outcome, proto, Some(query.question.query_type));
        let renamed = forward.renamed.then_some(&forward.name);
        let message = looked.reply.response(query, renamed, looked.age);
        reply(&message, response::limit(proto, query.edns))
    }
}

/// What is asked upstream for a query.
fn key(query: &Query, forward: &Forward) -> Key {
    Key {
        name: forward.name.clone(),
        kind: query.question.query_type,
        dnssec_ok: query.edns.is_some_and(|asker| asker.dnssec_ok),
        checking_disabled: query.header.checking_disabled,
        recursion_desired: query.header.recursion_desired,
    }
}

/// The message as bytes; where it cannot be encoded, a failure in its stead.
fn reply(message: &Message, limit: u16) -> Step {
    let bytes = response::encode(message, limit).or_else(|error| {
        error!(%error, "a response cannot be encoded; the client is told that it failed");
        let mut failure = Message::response(message.metadata.id, message.metadata.op_code);
        failure.metadata.response_code = ResponseCode::ServFail;
        failure.queries.clone_from(&message.queries);
        response::encode(&failure, limit)
    });
    bytes.map_or(Step::Nothing, Step::Reply)
}
