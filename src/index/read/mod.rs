//! Reading: a Kubernetes object in, the facts that matter and what is wrong with it out.

mod generated;
mod node;
mod pod;
mod service;
mod slice;
mod values;

pub use generated::{generated, is_generated};
pub use node::node;
pub use pod::pod;
pub use service::service;
pub use slice::{service_of, slice};
