//! Reading: a Kubernetes object in, the facts that matter and what is wrong with it out.

mod generated;
mod node;
mod other;
mod pod;
mod redirection;
mod service;
mod slice;
pub mod values;

pub use generated::{generated, is_generated};
pub use node::node;
pub use other::other_service;
pub use pod::{is_present, pod};
pub use service::{mesh_name_of, service};
pub use slice::{service_of, slice};
