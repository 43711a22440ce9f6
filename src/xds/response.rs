//! Responses, before they are bytes.

use std::borrow::Cow;
use std::sync::Arc;

use super::request::Protocol;
use super::{Batch, Kind};

/// A response that is to be sent.
#[derive(Debug, Clone)]
pub struct Response {
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// The type, `None` for one that is not served.
    pub kind: Option<Kind>,
    /// The URL of the type.
    pub type_url: Cow<'static, str>,
    /// Unique on the stream, never 0.
    pub nonce: u64,
    /// What the client repeats as the version that it accepted; for people to read.
    pub version: String,
    /// The resources.
    pub resources: Batch,
    /// Names that are gone or not there; in the delta protocol alone.
    pub removed: Arc<[Arc<str>]>,
}
