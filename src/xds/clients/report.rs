//! How a stream stands, type by type.

use std::sync::Arc;
use std::time::SystemTime;

use super::resources::differing;
use super::{Client, Refused, Sent, State};
use crate::xds::owed::Why;
use crate::xds::subscription::{Subscription, Wildcard};
use crate::xds::{Kind, Protocol, Session, Snapshot, Standing, View};

/// How a stream stands with the newest snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The node id; `None` before the first request.
    pub node: Option<Arc<str>>,
    /// From where it is connected: an address and port, or the process of a Unix socket.
    pub peer: Arc<str>,
    /// When the stream began.
    pub since: SystemTime,
    /// The protocol.
    pub protocol: Protocol,
    /// The type of a service that has but one; `None`: the aggregated service.
    pub only: Option<Kind>,
    /// How the node stands; `None` before there is a snapshot, or a node.
    pub standing: Option<Standing>,
    /// The generation of the snapshot that it is served from.
    pub generation: Option<u64>,
    /// The types that it asked for, in the order of sending.
    pub kinds: Vec<KindReport>,
}

/// How far a client is with a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has accepted all that there is for it.
    Synced,
    /// Something is still to be sent, or was not answered yet.
    Pending,
    /// It refused what was sent, and nothing has come since that it accepted in its place.
    Refused,
}

/// How a stream stands with one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindReport {
    /// The type.
    pub kind: Kind,
    /// How far the client is.
    pub progress: Progress,
    /// Whether it asked for all there is.
    pub wildcard: bool,
    /// How many names it asked for.
    pub names: usize,
    /// How many resources are known to be sent or taken away still; of a client that has nothing
    /// yet, those alone that it named.
    pub due: usize,
    /// How many responses it has not answered; of those that it never did, 16 at most.
    pub unanswered: usize,
    /// The last response.
    pub sent: Option<Sent>,
    /// The nonce of the last response that it accepted, and when it did.
    pub accepted: Option<(u64, SystemTime)>,
    /// The last response that it refused, however long ago.
    pub refused: Option<Refused>,
}

impl Client {
    pub(super) fn report(&self, newest: Option<&Arc<Snapshot>>) -> Report {
        let state = self.lock();
        let session = &state.session;
        let view = session.missed(newest);
        let standing = session.node.as_deref().zip(newest).map(|(node, newest)| {
            match (newest.nodes.contains_key(node), session.view.is_some()) {
                (true, _) => Standing::Served,
                (false, false) => Standing::Waiting,
                (false, true) => Standing::Forgotten,
            }
        });
        Report {
            node: session.node.clone(),
            peer: self.peer.clone(),
            since: self.since,
            protocol: self.protocol,
            only: self.only,
            standing,
            generation: session.view.as_ref().map(View::generation),
            kinds: match session.view {
                Some(_) => {
                    session.subs.values().map(|sub| state.kind(sub, view.as_ref())).collect()
                }
                None => session.awaited().into_iter().map(KindReport::awaited).collect(),
            },
        }
    }
}

impl Session {
    /// What the node sees of a newer snapshot than the one that it is served from, if this is one.
    /// A canary is served from one that not all have yet.
    pub(super) fn missed(&self, newest: Option<&Arc<Snapshot>>) -> Option<View> {
        let (newest, node) = newest.zip(self.node.as_deref())?;
        let has = self.generation().unwrap_or_default();
        (has < newest.generation).then(|| View::new(newest, node, &self.lens)).flatten()
    }
}

impl KindReport {
    /// A type that was asked for, of a stream that has no view yet.
    fn awaited(kind: Kind) -> Self {
        Self {
            kind,
            progress: Progress::Pending,
            wildcard: false,
            names: 0,
            due: 0,
            unanswered: 0,
            sent: None,
            accepted: None,
            refused: None,
        }
    }
}

impl State {
    /// How the stream stands with the type of a subscription. `newest` is the view that it has not
    /// taken in yet, if there is one.
    fn kind(&self, sub: &Subscription, newest: Option<&View>) -> KindReport {
        let missed = newest.map_or(0, |newest| differing(sub, &sub.view, newest).count());
        let account = self.ledger.account(sub.kind);
        let unanswered = account.map_or(0, super::ledger::Account::unanswered);
        let due = sub.owed.values().filter(|owed| owed.due(sub.kind, true)).count();
        let refused =
            sub.refusal.is_some() || sub.owed.values().any(|owed| owed.why == Why::Refused);
        let pending = sub.pending() || unanswered > 0 || missed > 0;
        let progress = match (refused, pending) {
            (true, _) => Progress::Refused,
            (false, true) => Progress::Pending,
            (false, false) => Progress::Synced,
        };
        KindReport {
            kind: sub.kind,
            progress,
            wildcard: sub.wildcard != Wildcard::No,
            names: sub.named.all(sub.kind, &sub.view).len(),
            due: due + missed,
            unanswered,
            sent: account.and_then(|account| account.sent),
            accepted: account.and_then(|account| account.accepted),
            refused: account.and_then(|account| account.refused.clone()),
        }
    }
}
