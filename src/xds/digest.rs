//! Digests of sets: two parties that hold the same set know it without comparing members.

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::Version;

/// A digest of a set, whatever the order of its members: how many there are, and the sum of their
/// hashes, so that one member more or less costs one addition. At 128 bits nobody meets two sets of
/// one digest by chance; who forges one deceives no stream but its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    sum: u128,
    pub(super) count: usize,
}

/// The hash of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member(u128);

impl Member {
    /// A name.
    pub(super) fn name(name: &str) -> Self {
        Self(xxh3_128(name.as_bytes()))
    }

    /// A name with the version that somebody has of it.
    pub(super) fn held(name: &str, version: Version) -> Self {
        Self(xxh3_128_with_seed(name.as_bytes(), version.number()))
    }
}

impl Digest {
    /// The digest with one member more.
    pub(super) fn with(self, member: Member) -> Self {
        Self { sum: self.sum.wrapping_add(member.0), count: self.count + 1 }
    }

    /// The digest with one member less.
    pub(super) fn without(self, member: Member) -> Self {
        Self { sum: self.sum.wrapping_sub(member.0), count: self.count.saturating_sub(1) }
    }

    /// The digest of names.
    pub(super) fn of_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        names.into_iter().map(|name| Member::name(name.as_ref())).collect()
    }
}

impl FromIterator<Member> for Digest {
    fn from_iter<I: IntoIterator<Item = Member>>(members: I) -> Self {
        members.into_iter().fold(Self::default(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn order_does_not_count_and_members_do() {
        let digest = Digest::of_names(["a", "b", "c"]);
        assert_eq!(digest, Digest::of_names(["c", "a", "b"]));
        for other in [vec!["a", "b"], vec!["a", "b", "b"], vec!["a", "b", "C"], vec!["abc"]] {
            assert_ne!(digest, Digest::of_names(other));
        }
        assert_eq!(Digest::of_names(["a", "b"]).with(Member::name("c")), digest);
        assert_eq!(digest.without(Member::name("c")), Digest::of_names(["b", "a"]));
    }

    #[test]
    fn a_version_belongs_to_its_name() {
        let (one, two) = (version("0000000000000001"), version("0000000000000002"));
        let of = |held: [(&str, Version); 2]| -> Digest {
            held.into_iter().map(|(name, version)| Member::held(name, version)).collect()
        };
        assert_eq!(of([("a", one), ("b", two)]), of([("b", two), ("a", one)]));
        assert_ne!(of([("a", one), ("b", two)]), of([("a", two), ("b", one)]));
        let long = "x".repeat(300);
        assert_ne!(Member::held(&long, one), Member::held(&long, two));
    }
}
