//! An authority, and all that are kept.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::asked::Rotation;
use crate::leader::Boot;

/// Seconds since 1970, as in certificates.
pub type Unix = u64;

/// What time it is by our own clock.
pub fn unix_now() -> Unix {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A certificate, DER. It is what tells authorities apart.
pub type Der = Arc<[u8]>;

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the clock of whoever checks certificates: the API server's, where it is known.
    pub wall: Unix,
    /// By the clock that never jumps. What "seen for five minutes" is counted by.
    pub boot: Boot,
}

/// The certificate of an authority.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate.
    pub der: Der,
    /// The name in it, for words.
    pub name: Arc<str>,
    /// From when it is valid.
    pub from: Unix,
    /// Until when it is valid.
    pub until: Unix,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} to {})", self.name, self.from, self.until)
    }
}

impl Authority {
    /// Whether it is valid at this time.
    pub fn valid_at(&self, wall: Unix) -> bool {
        (self.from..self.until).contains(&wall)
    }
}

/// A private key, PEM. It is in no log: its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Arc<str>);

impl Key {
    /// This one.
    pub fn new(pem: impl Into<Arc<str>>) -> Self {
        Self(pem.into())
    }

    /// The text. For the Secret and for signing, and for nothing else.
    pub(super) fn pem(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// An authority that can sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Its certificate.
    pub authority: Authority,
    /// Its key.
    pub key: Key,
}

/// An authority that signs no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    /// Its certificate.
    pub authority: Authority,
    /// When all that it signed has expired.
    pub until: Unix,
}

/// All that the Secret holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorities {
    /// The one that signs. None after the Secret was lost, until the next one may.
    pub signing: Option<Pair>,
    /// The one that signs next.
    pub next: Option<Pair>,
    /// Those that signed before, the newest last.
    pub retired: Vec<Retired>,
    /// What somebody asked for.
    pub rotation: Rotation,
}

impl Authorities {
    /// Every certificate, in the order of the bundle: the one that signs first.
    pub fn all(&self) -> impl Iterator<Item = &Authority> {
        let pairs = self.signing.iter().chain(&self.next).map(|pair| &pair.authority);
        pairs.chain(self.retired.iter().map(|retired| &retired.authority))
    }

    /// Whether this one is among them.
    pub fn knows(&self, der: &Der) -> bool {
        self.all().any(|authority| authority.der == *der)
    }
}
