//! Listings: all that a wildcard takes in, in the form that every stream shares which sees the same.
//!
//! A stream that takes in everything, or says that it has everything, is compared with the listing
//! in one step, whatever there is: by a digest, or by the batch that all of them send.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::digest::Digest;
use super::{Batch, Lens, Resource, batch};

/// What there is to know of all resources that some layers show through some lenses. It holds none
/// of them: the batch lives as long as a stream sends it or waits for the answer.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: OnceLock<Digest>,
    held: OnceLock<Digest>,
    batch: Mutex<Weak<batch::Inner>>,
}

impl Listing {
    /// The digest of the names.
    pub(super) fn names(&self, make: impl FnOnce() -> Digest) -> Digest {
        *self.names.get_or_init(make)
    }

    /// The digest of names and versions.
    pub(super) fn held(&self, make: impl FnOnce() -> Digest) -> Digest {
        *self.held.get_or_init(make)
    }

    /// All resources. While one stream makes them the others that want them wait for it, as they
    /// would have to make the very same.
    pub(super) fn batch(&self, make: impl FnOnce() -> Vec<Resource>) -> Batch {
        let mut kept = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = Batch::upgrade(&kept) {
            return batch;
        }
        let batch = Batch::shared(make());
        *kept = batch.downgrade();
        batch
    }
}

/// Listings by the lenses that count. They belong to what is seen, and go with it.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<Vec<Seen>>);

/// Some lenses, and what is seen through them.
type Seen = (Box<[Lens]>, Arc<Listing>);

impl Listings {
    /// The listing of those who look through these lenses.
    pub(super) fn of(&self, lenses: &[&Lens]) -> Arc<Listing> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, listing)) = all.iter().find(|(of, _)| of.iter().eq(lenses.iter().copied()))
        {
            return listing.clone();
        }
        let listing = Arc::new(Listing::default());
        all.push((lenses.iter().copied().cloned().collect(), listing.clone()));
        listing
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::super::Kind;
    use super::super::digest::Member;
    use super::*;

    #[test]
    fn equal_lenses_share_a_listing() {
        let listings = Listings::default();
        let [a, b]: [Lens; 2] = ["a".into(), "b".into()];
        let ab = listings.of(&[&a, &b]);
        assert!(Arc::ptr_eq(&ab, &listings.of(&[&a.to_string().into(), &b])));
        for other in [vec![], vec![&a], vec![&b, &a]] {
            assert!(!Arc::ptr_eq(&ab, &listings.of(&other)));
        }
    }

    #[test]
    fn what_a_listing_knows_is_made_once_and_its_batch_while_it_is_used() {
        let listing = Listing::default();
        let digest: Digest = [Member::name("a")].into_iter().collect();
        assert_eq!(listing.names(|| digest), digest);
        assert_eq!(listing.names(|| panic!("twice")), digest);
        assert_eq!(listing.held(|| digest), digest);
        assert_eq!(listing.held(|| panic!("twice")), digest);
        let make = || vec![Resource::new(Kind::Cluster, "a", vec![1], None)];
        let one = listing.batch(make);
        let two = listing.batch(|| panic!("twice"));
        assert_eq!(one.len(), two.len());
        drop((one, two));
        assert_eq!(listing.batch(make).len(), 1);
    }
}
