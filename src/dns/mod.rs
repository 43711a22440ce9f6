//! The resolver of a node: answers the mesh's names from the snapshot file, and forwards all
//! others.
//!
//! What is said is decided by pure functions: [`query::read`] of a packet, [`answer::decide`] of a
//! query and the [`table`], [`response::encode`] of a message. Around them stand the sockets, the
//! cache, the upstreams and the follower of the file. hickory-proto reads and writes the wire
//! format.
//!
//! DNS cookies (RFC 7873) are left out: hickory-proto knows the code of their option, but neither
//! makes nor checks them. A query that carries one is answered as if it had none, which the RFC
//! allows. What spoofed sources could gain is kept small otherwise: answers over UDP are short, ANY
//! of a forwarded name is answered over TCP alone, and each client may be limited.

pub mod answer;
pub mod cache;
pub mod engine;
mod limit;
mod lookup;
pub mod metrics;
pub mod query;
pub mod reply;
pub mod response;
mod seats;
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
