//! The plain types of the mesh: keys, services, pods, endpoints, findings and the projection.
//!
//! Nothing here knows where an object came from or how it is served: no kube, no tonic, no tokio
//! (a test holds that). The rules behind each type are those of the project's contract.

mod endpoint;
mod finding;
mod findings;
mod key;
mod locality;
mod names;
mod node_id;
mod pins;
mod pod;
mod projection;
mod protocol;
mod records_file;
mod registry;
mod service;

pub use endpoint::{Endpoint, Health};
pub use finding::{Finding, ObjectRef, Reason, Severity, quoted};
pub use findings::Findings;
pub use key::{KeyError, PodKey, ServiceKey, is_dns_label};
pub use locality::{Locality, Place};
pub use names::{DomainError, MeshNames};
pub use node_id::{NodeId, NodeIdError};
pub use pins::Pins;
pub use pod::{MeshPod, Upstreams};
pub use projection::{Projection, Records};
pub use protocol::{HttpVersion, Protocol};
pub use records_file::RecordsFile;
pub use registry::{Accounts, Generated, Registry, Said, Workload};
pub use service::{MeshPort, MeshService, TrafficScope};
