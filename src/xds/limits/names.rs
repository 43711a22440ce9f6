//! How much a request may hold, looked at before anything is made of it.
//!
//! Two bytes on the wire can be an empty name, and a name in memory has a few dozen.

use super::{Denial, Limits};

/// The names of a request that were seen.
#[derive(Debug)]
pub(in crate::xds) struct Names<'a> {
    limits: &'a Limits,
    seen: usize,
}

impl<'a> Names<'a> {
    pub(in crate::xds) fn within(limits: &'a Limits) -> Self {
        Self { limits, seen: 0 }
    }

    /// One more name.
    pub(in crate::xds) fn name(&mut self, name: &[u8]) -> Result<(), Denial> {
        self.take(name, self.limits.name)
    }

    /// One more entry of names and versions.
    pub(in crate::xds) fn entry(&mut self, entry: &[u8]) -> Result<(), Denial> {
        self.take(entry, self.limits.name.saturating_mul(2))
    }

    fn take(&mut self, bytes: &[u8], most: usize) -> Result<(), Denial> {
        if bytes.len() > most {
            return Err(Denial::Name);
        }
        self.seen += 1;
        if self.seen > self.limits.names { Err(Denial::Names) } else { Ok(()) }
    }
}
