//! What all have in common that speak to a Kubernetes API server: why a request fails, and how one
//! object is watched.

mod error;
mod watch;

pub use error::ApiError;
pub use watch::{backoff, only};
