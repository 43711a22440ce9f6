//! Resources: a name, a version that is a hash of the bytes, and the bytes, encoded once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::view::Layer;
use super::{Kind, Rope, field};

/// A hash of content: equal bytes have equal versions on every replica and across restarts
/// (statement 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    /// The version of bytes, however they are cut into chunks.
    pub fn of(rope: &Rope) -> Self {
        match rope.chunks() {
            [one] => Self(xxh3_64(one)),
            many => {
                let mut hash = Xxh3::new();
                for chunk in many {
                    hash.update(chunk);
                }
                Self(hash.digest())
            }
        }
    }

    /// The version of a whole whose parts have these.
    pub fn combine(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut hash = Xxh3::new();
        parts.into_iter().for_each(|part| hash.update(&part.0.to_be_bytes()));
        Self(hash.digest())
    }

    /// The version of a head before a stem, which is hashed once and not for each head.
    pub(super) fn headed(head: &[u8], stem: &Stem) -> Self {
        Self::combine([Self(xxh3_64(head)), stem.version])
    }

    /// The hash itself.
    pub(super) fn number(self) -> u64 {
        self.0
    }

    /// Reads what `Display` wrote: sixteen hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 16] = text.as_bytes().try_into().ok()?;
        // Without a branch for each digit: a reconnect storm reads hundreds of thousands of versions.
        let (number, wrong) = digits.iter().fold((0, 0), |(number, wrong), digit| {
            let (decimal, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
            let value = if decimal < 10 { decimal } else { letter.saturating_add(10) };
            (number << 4 | u64::from(value & 0xf), wrong | value)
        });
        (wrong <= 0xf).then_some(Self(number))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The tail of a message that several resources share behind heads of their own.
#[derive(Debug, Clone)]
pub struct Stem {
    /// The fields, encoded.
    pub rope: Rope,
    /// Their version.
    pub version: Version,
}

impl Stem {
    /// A stem of encoded fields.
    pub fn new(rope: impl Into<Rope>) -> Self {
        let rope = rope.into();
        let version = Version::of(&rope);
        Self { rope, version }
    }
}

#[derive(Debug)]
struct Inner {
    kind: Kind,
    name: Arc<str>,
    version: Version,
    body: Rope,
    any: Bytes,
    delta: Bytes,
    needs: Option<Arc<str>>,
}

/// One encoded resource. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Resource(Arc<Inner>);

impl Resource {
    /// A resource of an encoded message. `needs` is the name of the load assignment without which
    /// a cluster is not warm; `None` for everything else.
    pub fn new(
        kind: Kind,
        name: impl Into<Arc<str>>,
        body: impl Into<Rope>,
        needs: Option<Arc<str>>,
    ) -> Self {
        let body = body.into();
        let version = Version::of(&body);
        Self::assemble(kind, name.into(), version, body, needs)
    }

    /// A resource that is a head of its own before a shared stem.
    pub fn headed(kind: Kind, name: impl Into<Arc<str>>, head: Bytes, stem: &Stem) -> Self {
        let version = Version::headed(&head, stem);
        let chunks = std::iter::once(head).chain(stem.rope.chunks().iter().cloned());
        Self::assemble(kind, name.into(), version, Rope::new(chunks), None)
    }

    /// A resource whose version is known.
    pub(super) fn assemble(
        kind: Kind,
        name: Arc<str>,
        version: Version,
        body: Rope,
        needs: Option<Arc<str>>,
    ) -> Self {
        // google.protobuf.Any: type_url is field 1, value field 2.
        let url = kind.type_url().as_bytes();
        let mut any = BytesMut::with_capacity(url.len() + 16);
        field::put(1, url, &mut any);
        field::announce(2, body.len(), &mut any);
        // Resource of the delta protocol: version is field 1, name field 3, the Any field 2.
        let mut delta = BytesMut::with_capacity(name.len() + 24);
        field::put(1, version.to_string().as_bytes(), &mut delta);
        field::put(3, name.as_bytes(), &mut delta);
        Self(Arc::new(Inner {
            kind,
            name,
            version,
            body,
            any: any.freeze(),
            delta: delta.freeze(),
            needs,
        }))
    }

    /// The type.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The name.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The encoded message itself.
    pub fn body(&self) -> &Rope {
        &self.0.body
    }

    /// What stands before the body in an `Any`. Together they are the content of field 2 of both
    /// a `DiscoveryResponse` and a delta `Resource`.
    pub fn any_head(&self) -> &Bytes {
        &self.0.any
    }

    /// The length of the `Any`.
    pub fn any_len(&self) -> usize {
        self.0.any.len() + self.0.body.len()
    }

    /// Version and name, as fields of a delta `Resource`; its `Any` follows as field 2.
    pub fn delta_head(&self) -> &Bytes {
        &self.0.delta
    }

    /// The load assignment that a cluster needs to become warm.
    pub fn needs(&self) -> Option<&Arc<str>> {
        self.0.needs.as_ref()
    }
}

/// What decides which form of a resource a proxy gets: its locality, its node, or the protocol of
/// its stream. The words mean nothing to this module; equal words select.
pub type Lens = Arc<str>;

/// What stands in a table under a name.
#[derive(Debug, Clone)]
pub enum Entry {
    /// The same for everybody.
    Plain(Resource),
    /// A form for each lens that asks, and one for those without any of them.
    ByLens {
        /// By lens; the first of a view's lenses that has a form here decides.
        forms: Arc<BTreeMap<Lens, Entry>>,
        /// For everyone else; never `ByLens` itself.
        other: Box<Entry>,
    },
    /// A tail without its name, for tables that are seen through a prefix.
    Stem(Stem),
    /// Made of the resources of other tables.
    Composed(Arc<Composed>),
}

/// A resource that holds those of other tables in a repeated field, as a `RouteConfiguration` its
/// virtual hosts. It is put together when it is first asked for, of the chunks that exist.
#[derive(Debug)]
pub struct Composed {
    kind: Kind,
    name: Arc<str>,
    head: Bytes,
    tag: u32,
    layers: Vec<Layer>,
    last: Option<Arc<str>>,
    made: OnceLock<Resource>,
}

impl Composed {
    /// `head` holds the fields of its own; `tag` is the repeated field; the parts are what
    /// `layers` show, sorted by name, except that `last` is the last.
    pub fn new(
        kind: Kind,
        name: impl Into<Arc<str>>,
        head: Bytes,
        tag: u32,
        layers: Vec<Layer>,
        last: Option<Arc<str>>,
    ) -> Self {
        Self { kind, name: name.into(), head, tag, layers, last, made: OnceLock::new() }
    }

    /// Whether it is made of the very same parts.
    pub(super) fn same_parts(&self, other: &Self) -> bool {
        self.name == other.name
            && self.head == other.head
            && self.layers.len() == other.layers.len()
            && self.layers.iter().zip(&other.layers).all(|(a, b)| a.is(b))
    }

    /// The resource, made at the first call.
    pub fn resource(&self) -> &Resource {
        self.made.get_or_init(|| {
            let mut parts = Layer::union(&self.layers);
            let last = self.last.as_ref().and_then(|name| parts.remove(name));
            let mut chunks = vec![self.head.clone()];
            let mut versions = vec![Version(xxh3_64(&self.head))];
            for part in parts.into_values().chain(last) {
                versions.push(part.version());
                let mut announce = BytesMut::with_capacity(8);
                field::announce(self.tag, part.body().len(), &mut announce);
                chunks.push(announce.freeze());
                chunks.extend(part.body().chunks().iter().cloned());
            }
            let version = Version::combine(versions);
            Resource::assemble(self.kind, self.name.clone(), version, Rope::new(chunks), None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn a_version_is_read_as_it_is_written_and_nothing_else_is_one() {
        for number in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210] {
            assert_eq!(Version::parse(&Version(number).to_string()), Some(Version(number)));
        }
        for byte in 0..=0x7f_u8 {
            for at in [0, 7, 15] {
                let mut text = vec![b'3'; 16];
                text.splice(at..=at, [byte]);
                let text = String::from_utf8_lossy(&text);
                let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                assert_eq!(Version::parse(&text).is_some(), is_digit, "{text:?}");
            }
        }
        for text in ["", "0", "00000000000000000", "000000000000000é"] {
            assert_eq!(Version::parse(text), None);
        }
    }
}
