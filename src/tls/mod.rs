//! TLS from files that change: a certificate with its key, the authorities of those who call, and
//! who a caller proves to be.
//!
//! Files are read again when they change; while they are broken, what was good goes on. Nothing of
//! a private key is ever shown.

mod authorities;
mod follow;
mod identity;
mod metrics;
mod mutual;
mod pair;
#[cfg(test)]
mod tests;

pub use authorities::{Authorities, AuthoritiesError};
pub use follow::{Material, News, follow};
pub use identity::{Identity, IdentityError, identity};
pub use metrics::Metrics;
pub use mutual::{Mutual, MutualError, MutualFiles};
pub use pair::{Files, Options, Pair, PairError};

/// Seconds since 1970.
pub type Unix = u64;

/// What time it is by our own clock.
pub fn unix_now() -> Unix {
    use std::time::SystemTime;
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
