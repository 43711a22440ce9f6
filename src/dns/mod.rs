//! The resolver of a node: answers the mesh's names from the snapshot file, and forwards all
//! others.
//!
//! What is said is decided by pure functions: [`query::read`] of a packet, [`answer::decide`] of a
//! query and the [`table`], [`response::encode`] of a message. Around them stand the sockets, the
//! cache, the upstreams and the follower of the file. hickory-proto reads and writes the wire
//! format.

pub mod answer;
pub mod cache;
pub mod engine;
mod limit;
mod lookup;
pub mod metrics;
pub mod query;
pub mod reply;
pub mod response;
mod self_check;
mod serve;
mod start;
pub mod table;
pub mod upstream;
mod watch;
pub mod zone;

pub use metrics::Metrics;
pub use serve::BindError;
pub use start::{Options, Resolver, StartError};
