//! Reading: a Kubernetes object in, the facts that matter and what is wrong with it out.

mod node;
mod pod;
mod service;
mod slice;
mod values;

pub use node::node;
pub use pod::pod;
pub use service::service;
pub use slice::{service_of, slice};
