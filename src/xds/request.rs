//! A request of either protocol in the form that the state machine reads.

use super::{Versions, Words};

/// The two protocols that a stream may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// State of the world: a request says all that the client wants.
    Sotw,
    /// Incremental: requests and responses say what changes.
    Delta,
}

impl Protocol {
    /// The word by which a view selects forms for this protocol.
    pub fn lens(self) -> &'static str {
        match self {
            Self::Sotw => "sotw",
            Self::Delta => "delta",
        }
    }
}

/// A decoded request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The id of the node, in requests that bear a node.
    pub node: Option<String>,
    /// The type, empty where the service implies it.
    pub type_url: String,
    /// The nonce of the response that this answers, or empty.
    pub nonce: String,
    /// The client's words when it refused that response; empty words refuse too.
    pub error: Option<String>,
    /// What it wants.
    pub wants: Wants,
}

/// What a request wants. There are few at a time: a box for the large form would spare nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wants {
    /// State of the world: all names.
    All(Words),
    /// Delta: what changes.
    Change {
        /// Names that are wanted from now on.
        subscribe: Words,
        /// Names that are not wanted any more.
        unsubscribe: Words,
        /// What the client has from an earlier stream, name and version.
        initial: Versions,
    },
}

impl Wants {
    /// How many names it holds.
    pub(super) fn names(&self) -> usize {
        match self {
            Self::All(names) => names.len(),
            Self::Change { subscribe, unsubscribe, initial } => {
                subscribe.len() + unsubscribe.len() + initial.len()
            }
        }
    }
}

impl Default for Wants {
    fn default() -> Self {
        Self::All(Words::default())
    }
}
