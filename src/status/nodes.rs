//! The streams in JSON: the page `/nodes`, which `aether status` reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::xds::{Clients, KindReport, Progress, Protocol, Report, Snapshot, Standing};

/// All streams, sorted by node and then by age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// The generation of the snapshot that is served; `None` before there is one.
    pub generation: Option<u64>,
    /// The streams.
    pub streams: Vec<Stream>,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The node id; empty before the first request.
    pub node: String,
    /// From where it is connected: an address and port, or the process of a Unix socket.
    pub address: String,
    /// When it began.
    pub since: Timestamp,
    /// `delta` or `sotw`.
    pub protocol: String,
    /// `ADS`, or the one type of its service.
    pub service: String,
    /// `served`; `waiting` while the node is not known, or not managed; `forgotten` once it is not
    /// any more; `None` before it can be told.
    pub standing: Option<String>,
    /// The generation of the snapshot that it is served from.
    pub generation: Option<u64>,
    /// What it asked for, by the short names of types.
    pub types: BTreeMap<String, OfType>,
}

/// How a stream stands with a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfType {
    /// `synced`, `pending` or `refused`.
    pub state: String,
    /// Whether it asked for all there is.
    pub wildcard: bool,
    /// How many names it asked for.
    pub names: usize,
    /// How many resources are known to be due still.
    pub due: usize,
    /// How many responses are not answered.
    pub unanswered: usize,
    /// The last response.
    pub sent: Option<Sent>,
    /// The last response that was accepted.
    pub accepted: Option<Answered>,
    /// The last response that was refused, however long ago.
    pub refused: Option<Refused>,
}

/// A response that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its nonce.
    pub nonce: u64,
    /// When.
    pub at: Timestamp,
    /// How many resources were in it.
    pub resources: usize,
    /// How many names it said to be gone.
    pub removed: usize,
}

/// A response that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Its nonce.
    pub nonce: u64,
    /// When the answer came.
    pub at: Timestamp,
}

/// A response that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its nonce.
    pub nonce: u64,
    /// When the answer came.
    pub at: Timestamp,
    /// The proxy's words.
    pub words: String,
    /// The resources that stand in them.
    pub names: Vec<String>,
}

impl Nodes {
    /// The streams as they stand with the newest snapshot.
    pub fn of(clients: &Clients, newest: Option<&Arc<Snapshot>>) -> Self {
        let streams = clients.reports(newest).iter().map(Stream::from).collect();
        Self { generation: newest.map(|newest| newest.generation), streams }
    }
}

impl From<&Report> for Stream {
    fn from(report: &Report) -> Self {
        let standing = report.standing.map(|standing| match standing {
            Standing::Served => "served",
            Standing::Waiting => "waiting",
            Standing::Forgotten => "forgotten",
        });
        let protocol = match report.protocol {
            Protocol::Sotw => "sotw",
            Protocol::Delta => "delta",
        };
        let types = report.kinds.iter().map(|of| (of.kind.short_name().to_owned(), of.into()));
        Self {
            node: report.node.as_deref().unwrap_or_default().to_owned(),
            address: report.peer.to_string(),
            since: timestamp(report.since),
            protocol: protocol.to_owned(),
            service: report.only.map_or("ADS", crate::xds::Kind::short_name).to_owned(),
            standing: standing.map(str::to_owned),
            generation: report.generation,
            types: types.collect(),
        }
    }
}

impl From<&KindReport> for OfType {
    fn from(report: &KindReport) -> Self {
        let state = match report.progress {
            Progress::Synced => "synced",
            Progress::Pending => "pending",
            Progress::Refused => "refused",
        };
        Self {
            state: state.to_owned(),
            wildcard: report.wildcard,
            names: report.names,
            due: report.due,
            unanswered: report.unanswered,
            sent: report.sent.map(|sent| Sent {
                nonce: sent.nonce,
                at: timestamp(sent.at),
                resources: sent.resources,
                removed: sent.removed,
            }),
            accepted: report.accepted.map(|(nonce, at)| Answered { nonce, at: timestamp(at) }),
            refused: report.refused.as_ref().map(|refused| Refused {
                nonce: refused.nonce,
                at: timestamp(refused.at),
                words: refused.words.to_string(),
                names: refused.names.to_vec(),
            }),
        }
    }
}

/// A time in milliseconds, which is as exact as people read it; one that no calendar has is 1970.
fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(milliseconds).unwrap_or_default()
}
