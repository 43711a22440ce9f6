//! Batches: resources that are sent together, and what many streams that send them can share.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;

use super::digest::Digest;
use super::encode::{encoded, size};
use super::order::route_configuration;
use super::request::Protocol;
use super::{Resource, Version};

/// The most bytes of resources in one delta response: stock gRPC clients read messages of 4 MiB,
/// and something must be left for names and the rest (statement 26).
const PART: usize = 3_500_000;

/// Some resources, in the order in which they are sent. Cloning shares them, and all that is made
/// of them: a thousand streams that send the same batch encode it once.
#[derive(Debug, Clone, Default)]
pub struct Batch(Arc<Inner>);

#[derive(Debug, Default)]
pub(super) struct Inner {
    resources: Box<[Resource]>,
    /// Whether many streams are to send it, so that its bytes are worth being kept.
    shared: bool,
    sizes: [usize; 2],
    pages: [OnceLock<Arc<[Bytes]>>; 2],
    parts: OnceLock<Vec<Batch>>,
    version: OnceLock<Version>,
    needs: OnceLock<Digest>,
    tables: OnceLock<Vec<Arc<str>>>,
}

fn index(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Sotw => 0,
        Protocol::Delta => 1,
    }
}

impl Batch {
    /// What one stream sends.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self::of(resources, false)
    }

    /// What many streams send.
    pub(super) fn shared(resources: Vec<Resource>) -> Self {
        Self::of(resources, true)
    }

    fn of(resources: Vec<Resource>, shared: bool) -> Self {
        let sizes = [Protocol::Sotw, Protocol::Delta]
            .map(|protocol| resources.iter().map(|resource| size(resource, protocol)).sum());
        let resources = resources.into();
        Self(Arc::new(Inner { resources, shared, sizes, ..Inner::default() }))
    }

    /// The bytes of the resources in a response.
    pub(super) fn size(&self, protocol: Protocol) -> usize {
        let [sotw, delta] = self.0.sizes;
        if protocol == Protocol::Sotw { sotw } else { delta }
    }

    /// The bytes themselves, where they are shared; made at the first call.
    pub(super) fn pages(&self, protocol: Protocol) -> Option<&Arc<[Bytes]>> {
        let pages = self.0.pages.get(index(protocol)).filter(|_| self.0.shared)?;
        Some(pages.get_or_init(|| encoded(self, protocol).into()))
    }

    /// The batch in parts that a stock client reads, or of one resource where that is larger.
    pub(super) fn parts(&self) -> Vec<Self> {
        if self.size(Protocol::Delta) <= PART {
            return vec![self.clone()];
        }
        self.0.parts.get_or_init(|| self.cut(PART)).clone()
    }

    /// The batch in parts of at most `limit` bytes.
    pub(super) fn cut(&self, limit: usize) -> Vec<Self> {
        let mut all = Vec::new();
        let mut part = Vec::new();
        let mut filled = 0;
        for resource in self.iter() {
            let size = size(resource, Protocol::Delta);
            if filled + size > limit && !part.is_empty() {
                all.push(Self::of(std::mem::take(&mut part), self.0.shared));
                filled = 0;
            }
            filled += size;
            part.push(resource.clone());
        }
        all.push(Self::of(part, self.0.shared));
        all
    }

    /// The version of all of it.
    pub(super) fn version(&self) -> Version {
        *self.0.version.get_or_init(|| Version::combine(self.iter().map(Resource::version)))
    }

    /// The load assignments that its clusters need.
    pub(super) fn needs(&self) -> Digest {
        *self.0.needs.get_or_init(|| {
            // Some clusters share theirs.
            let names: BTreeSet<&Arc<str>> = self.iter().filter_map(Resource::needs).collect();
            Digest::of_names(names)
        })
    }

    /// The route configurations of its virtual hosts.
    pub(super) fn tables(&self) -> &[Arc<str>] {
        self.0.tables.get_or_init(|| {
            let mut tables: Vec<Arc<str>> = Vec::new();
            for table in self.iter().map(|host| route_configuration(host.name())) {
                if tables.last().is_none_or(|last| **last != *table) {
                    tables.push(table.into());
                }
            }
            tables
        })
    }

    /// A reference that does not keep it.
    pub(super) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    /// The batch of such a reference, while anybody has it.
    pub(super) fn upgrade(weak: &Weak<Inner>) -> Option<Self> {
        weak.upgrade().map(Self)
    }
}

impl Deref for Batch {
    type Target = [Resource];

    fn deref(&self) -> &[Resource] {
        &self.0.resources
    }
}

impl From<Vec<Resource>> for Batch {
    fn from(resources: Vec<Resource>) -> Self {
        Self::new(resources)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::super::Kind;
    use super::*;

    fn hosts(names: &[&str]) -> Vec<Resource> {
        let host = |name: &&str| Resource::new(Kind::VirtualHost, *name, vec![0; 100], None);
        names.iter().map(host).collect()
    }

    #[test]
    fn what_is_shared_is_made_once_and_what_is_not_is_not_kept() {
        let shared = Batch::shared(hosts(&["t/a", "t/b"]));
        for protocol in [Protocol::Sotw, Protocol::Delta] {
            let pages = shared.pages(protocol).unwrap();
            assert!(Arc::ptr_eq(pages, shared.clone().pages(protocol).unwrap()));
            assert_eq!(pages.iter().map(Bytes::len).sum::<usize>(), shared.size(protocol));
            assert!(Batch::new(hosts(&["t/a"])).pages(protocol).is_none());
        }
        let weak = shared.downgrade();
        assert!(Batch::upgrade(&weak).is_some());
        drop(shared);
        assert!(Batch::upgrade(&weak).is_none());
    }

    #[test]
    fn parts_hold_everything_and_are_as_large_as_they_may_be() {
        let all = Batch::shared(hosts(&["a", "b", "c"]));
        let one = size(&all[0], Protocol::Delta);
        for (limit, wanted) in [
            (1, vec![1, 1, 1]),
            (one * 2 - 1, vec![1, 1, 1]),
            (one * 2, vec![2, 1]),
            (one * 3, vec![3]),
        ] {
            let parts = all.cut(limit);
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), wanted);
            let names = parts.iter().flat_map(|part| part.iter().map(|r| r.name().to_string()));
            assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c"]);
        }
        assert_eq!(Batch::default().parts().len(), 1);
    }

    #[test]
    fn a_batch_knows_its_route_configurations() {
        let tables = |names: &[&str]| Batch::new(hosts(names)).tables().to_vec();
        assert_eq!(tables(&["t/a", "t/b", "u/v/c"]), ["t".into(), "u/v".into()]);
        assert!(tables(&[]).is_empty());
    }
}
