//! Waiting for an identity: the Workload API is asked until it gives an X.509 SVID.
//!
//! What an error means and what is to be said of it is decided in [`Trouble`], apart from the
//! asking.

mod ask;
#[cfg(test)]
mod tests;
mod trouble;
mod wait;

pub use ask::Identity;
pub use trouble::Trouble;
pub use wait::{GaveUp, Options, wait};
