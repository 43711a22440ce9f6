//! What a request may turn out to be.

use std::sync::Arc;

use super::Kind;

/// Why a stream ends. All of them are the client's to mend (InvalidArgument).
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// Statement 3.
    #[error("the first request has no node: set node.id in the Envoy bootstrap")]
    NoNode,
    /// A node id that is refused, with the reason.
    #[error("node.id {id:?} is refused: {reason}")]
    Node {
        /// The id.
        id: String,
        /// Why, and what would be accepted.
        reason: String,
    },
    /// One stream speaks for one node.
    #[error("the stream began as node {was:?} and now says {now:?}: open a stream for each node")]
    OtherNode {
        /// The id in the first request.
        was: String,
        /// The id in this one.
        now: String,
    },
    /// Statement 2.
    #[error("type_url is empty: on the aggregated service every request names its type")]
    NoType,
    /// More requests than are kept for a node that is not known yet.
    #[error("more than {0} requests before the node is known: wait for the first response")]
    Impatient(usize),
}

/// A response that the client refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type.
    pub kind: Kind,
    /// The client's words.
    pub words: String,
    /// The names of that response that stand in these words.
    pub names: Vec<String>,
    /// Whether it said the very same at its last refusal of this type.
    pub repeated: bool,
}

/// What a request was, for the counters and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A subscription, an acknowledgement, or both.
    Fine,
    /// A refusal.
    Refused(Refusal),
    /// A type that is not served on this stream.
    Unknown,
}

/// Decides whether a node id may connect; the error says why not, and what may.
pub type Admit = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Hears of refusals, with the node id of who refused. It must not wait.
pub type OnRefusal = Arc<dyn Fn(&str, &Refusal) + Send + Sync>;

/// The nonce of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nonce {
    /// It has none.
    None,
    /// In our form.
    Of(u64),
    /// In some other form.
    Foreign,
}

impl Nonce {
    /// Reads the field.
    pub(super) fn parse(text: &str) -> Self {
        if text.is_empty() { Self::None } else { text.parse().map_or(Self::Foreign, Self::Of) }
    }
}
