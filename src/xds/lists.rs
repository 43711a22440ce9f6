//! The lists of requests. They stay the bytes that came: to compare thousands of names with what is
//! served, no string has to be made of any.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::digest::{Digest, Member};
use super::fields::{Fields, pair, text};
use super::{Version, field};

/// What is seen of a list while it is read, so that it need not be read again where the digest
/// tells enough.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    len: usize,
    star: bool,
    digest: Digest,
    /// Whether a version is not in our form.
    foreign: bool,
}

impl Tally {
    /// Takes a name in.
    pub(super) fn name(&mut self, name: &str) {
        self.len += 1;
        if name == "*" {
            self.star = true;
        } else {
            self.digest = self.digest.with(Member::name(name));
        }
    }

    /// Takes a name and its version in.
    pub(super) fn held(&mut self, name: &str, version: &str) {
        self.len += 1;
        match Version::parse(version) {
            Some(version) => self.digest = self.digest.with(Member::held(name, version)),
            None => self.foreign = true,
        }
    }
}

/// Some names, as the bytes of a message that holds them in a repeated field.
#[derive(Clone, Default)]
pub struct Words {
    message: Bytes,
    tag: u32,
    tally: Tally,
}

impl Words {
    /// The fields of a number in a message, all of them strings that were seen.
    pub(super) fn fields(message: &Bytes, tag: u32, tally: Tally) -> Self {
        // An empty list must not keep the message.
        let message = if tally.len == 0 { Bytes::new() } else { message.clone() };
        Self { message, tag, tally }
    }

    /// Whether `*` is among them.
    pub(super) fn star(&self) -> bool {
        self.tally.star
    }

    /// The digest of the others.
    pub(super) fn digest(&self) -> Digest {
        self.tally.digest
    }

    /// How many there are, those that stand there twice counted twice.
    pub fn len(&self) -> usize {
        self.tally.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tally.len == 0
    }

    /// The names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let fields = Fields(&self.message).map_while(Result::ok);
        let ours = fields.filter(|(tag, _)| *tag == self.tag);
        ours.filter_map(|(tag, value)| text(tag, value).ok()).take(self.tally.len)
    }
}

/// Names with the versions that a client has of them, as the bytes of a message that holds them
/// in a map.
#[derive(Clone, Default)]
pub struct Versions(Words);

impl Versions {
    /// The entries of a map in a message, all of two strings that were seen.
    pub(super) fn fields(message: &Bytes, tag: u32, tally: Tally) -> Self {
        Self(Words::fields(message, tag, tally))
    }

    /// Their digest; `None` where a version is not one of ours.
    pub(super) fn digest(&self) -> Option<Digest> {
        (!self.0.tally.foreign).then_some(self.0.tally.digest)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and their versions. Of one name that stands there twice the last counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = Fields(&self.0.message).map_while(Result::ok);
        let ours = fields.filter(|(tag, _)| *tag == self.0.tag);
        ours.filter_map(|(_, entry)| pair(entry).ok()).take(self.0.len())
    }
}

impl<N: AsRef<str>> FromIterator<N> for Words {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let (mut message, mut tally) = (BytesMut::new(), Tally::default());
        for name in names {
            field::put(1, name.as_ref().as_bytes(), &mut message);
            tally.name(name.as_ref());
        }
        Self { message: message.freeze(), tag: 1, tally }
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Versions {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(held: I) -> Self {
        let (mut message, mut tally) = (BytesMut::new(), Tally::default());
        for (name, version) in held {
            let mut entry = BytesMut::new();
            field::put(1, name.as_ref().as_bytes(), &mut entry);
            field::put(2, version.as_ref().as_bytes(), &mut entry);
            field::put(1, &entry, &mut message);
            tally.held(name.as_ref(), version.as_ref());
        }
        Self(Words { message: message.freeze(), tag: 1, tally })
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words {}

impl PartialEq for Versions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Versions {}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_give_back_what_they_are_made_of() {
        let words: Words = ["b", "", "a", "b"].into_iter().collect();
        assert_eq!(words.iter().collect::<Vec<_>>(), ["b", "", "a", "b"]);
        assert_eq!((words.len(), words.is_empty()), (4, false));
        let versions: Versions = [("b", "1"), ("a", ""), ("b", "2")].into_iter().collect();
        assert_eq!(versions.iter().collect::<Vec<_>>(), [("b", "1"), ("a", ""), ("b", "2")]);
        assert_eq!((versions.len(), versions.is_empty()), (3, false));
        assert_eq!(Words::default().iter().next(), None);
        assert_eq!(Versions::default().iter().next(), None);
    }
}
