//! A general xDS server: it serves any snapshot of named, versioned, encoded resources.
//!
//! It knows no mesh. With a snapshot of raw resources it serves anybody's configuration, and the
//! tests use it so. Resource types appear as type URLs and bytes alone.
//!
//! The [`Store`] holds the snapshot; a [`Session`] is one stream as a state machine, which decides
//! from requests, snapshots and time what is sent next; the [`Server`] does the reading and writing.

mod accept;
mod batch;
mod beside;
mod canary;
mod clients;
mod connection;
mod cork;
mod delta;
mod digest;
mod drive;
mod encode;
mod fields;
mod flight;
mod goodbye;
mod handshake;
mod heard;
mod inbound;
mod kind;
mod lately;
mod leave;
mod limits;
mod listen;
mod listing;
mod lists;
mod message;
mod metrics;
mod names;
mod order;
mod owed;
mod peer;
mod recent;
mod request;
mod resource;
mod response;
mod retry;
mod rope;
mod server;
mod service;
mod session;
mod sizes;
mod snapshot;
mod socket;
mod sorted;
mod sotw;
mod stats;
mod store;
mod stream;
mod subscription;
mod table;
#[cfg(test)]
mod tests;
mod trailers;
mod view;
mod words;

pub use batch::Batch;
pub use beside::{Answer, Caller};
pub use canary::{CanarySettings, Fate, Grounds};
pub use clients::{Clients, Config, Delivery, KindReport, Progress, Refused, Report, Sent};
pub use heard::{Admit, Fault, Heard, OnRefusal, Refusal};
pub use kind::Kind;
pub use limits::{Counts, Denial, Limits};
pub use listen::{ListenError, Listener};
pub use lists::{Versions, Words};
pub use peer::{Claim, Proven, Tls, Vouch};
pub use request::{Protocol, Request, Wants};
pub use resource::{Composed, Entry, Lens, Resource, Stem, Version};
pub use response::Response;
pub use rope::{Rope, field};
pub use server::Server;
pub use service::{Service, Shared};
pub use session::{Session, Standing};
pub use sizes::Size;
pub use snapshot::{Group, NodeSpec, Own, Snapshot};
pub use socket::{Socket, SocketError};
pub use sorted::Sorted;
pub use stats::{Latency, PerKind, Pushes, Reason, Stats};
pub use store::{OnFate, Store};
pub use table::Table;
pub use view::{Layer, View};
