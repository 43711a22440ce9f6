//! The certificate of the webhook, which looks after itself.
//!
//! *builtin*: we are our own authority. The leader keeps it in a Secret of our own namespace, and
//! tells API servers of it in the `caBundle` of our own webhook configuration; every replica signs
//! a certificate for itself, in memory. *files*: somebody else makes a pair of files, which is read
//! again when it changes ([`files`]).
//!
//! Several API servers learn of a change at different times, and so do several replicas. So an
//! authority goes through three states, all kept in the Secret:
//!
//! - *next*: it stands in the bundle and signs nothing. Once the leader has itself seen it there
//!   for the whole overlap, without a gap, every API server knows it.
//! - *signing*: replicas sign with it, and with no other.
//! - *retired*: its key is thrown away; it stays in the bundle until all that it signed has
//!   expired.
//!
//! The bundle is made of the Secret, always of the whole of it, and the Secret is written first.
//! Both are read afresh for each decision: a watch only says when. Each write bears the version
//! that it replaces and is made with the permit of a leader, so that one who slept changes nothing.
//! What somebody deleted or overwrote the leader puts back from its memory; one that has none takes
//! up the authorities of ours that API servers still trust, and begins a new one next to them.
//!
//! Whoever has reason to think that a key is in other hands asks for another authority by an
//! annotation ([`ROTATE`]).
//!
//! [`plan()`] decides, and knows neither an API server nor a key nor a clock; [`Keeper`] acts.

mod api;
mod asked;
mod authority;
mod bundle;
pub mod files;
mod keeper;
mod memory;
mod metrics;
mod plan;
mod rotation;
mod secret;
mod serve;
mod settings;
mod slot;
#[cfg(test)]
mod tests;
mod x509;

pub use api::Kubernetes;
pub use asked::{ROTATE, Rotation};
pub use authority::{Authorities, Authority, Der, Key, Now, Pair, Retired, Unix, unix_now};
pub use bundle::{Bundle, Configuration, Entry};
pub use keeper::Keeper;
pub use memory::{Live, Memory};
pub use metrics::Metrics;
pub use plan::{Observed, Plan, Write, plan};
pub use rotation::{Contents, Place, Step};
pub use secret::{Fault, Secret};
pub use serve::{Serve, Served};
pub use settings::{Settings, WrongSettings};
pub use slot::Slot;
pub use x509::{Leaf, X509Error, verify};
