//! The certificate that is presented at this moment.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificate that each new connection is answered with. While there is none a handshake
/// fails, and the API server applies the failure policy.
#[derive(Default)]
pub struct Slot(ArcSwapOption<CertifiedKey>);

impl Slot {
    /// From now on, this one.
    pub fn set(&self, certified: Arc<CertifiedKey>) {
        self.0.store(Some(certified));
    }

    /// The present one.
    pub fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

impl ResolvesServerCert for Slot {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", if self.get().is_some() { "one" } else { "none" })
    }
}
