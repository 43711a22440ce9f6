//! Responses, before they are bytes.

use std::borrow::Cow;
use std::sync::Arc;

use super::request::Protocol;
use super::{Kind, Resource};

/// The most bytes of resources in one delta response: stock gRPC clients read messages of 4 MiB,
/// and something must be left for names and the rest (statement 26).
pub(super) const PART: usize = 3_500_000;

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
    pub resources: Arc<[Resource]>,
    /// Names that are gone or not there; in the delta protocol alone.
    pub removed: Arc<[Arc<str>]>,
}

/// Cuts resources into parts of at most `limit` bytes, or of one resource where that is larger.
pub(super) fn parts(resources: &Arc<[Resource]>, limit: usize) -> Vec<Arc<[Resource]>> {
    let size = |r: &Resource| r.any_len() + r.delta_head().len() + 16;
    if resources.iter().map(size).sum::<usize>() <= limit {
        return vec![resources.clone()];
    }
    let mut all = Vec::new();
    let mut part = Vec::new();
    let mut filled = 0;
    for resource in resources.iter() {
        if filled + size(resource) > limit && !part.is_empty() {
            all.push(std::mem::take(&mut part).into());
            filled = 0;
        }
        filled += size(resource);
        part.push(resource.clone());
    }
    all.push(part.into());
    all
}
