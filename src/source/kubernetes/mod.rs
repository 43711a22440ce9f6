//! A Kubernetes API server, listed once or followed.
//!
//! Of each kind there is a watch that begins with a list (`watch`); what it says is decoded and
//! trimmed as it arrives (`seen`), and made into changes (`state`). Nothing is told before
//! every kind was listed whole, a new list takes the place of the old one whole, and what is as it
//! was is no change. What stands in the way is said (`ledger`, `trouble`), and asked again.

mod access;
mod follow;
mod kinds;
mod ledger;
mod load;
mod metrics;
mod observed;
mod reporter;
mod seen;
mod state;
#[cfg(test)]
mod tests;
mod trouble;
mod watch;

pub use access::{Access, AccessError, Connection, connect};
pub use follow::follow;
pub use load::{LoadError, load};
pub use metrics::Metrics;
