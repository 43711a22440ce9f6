//! The labels and annotations of the contract.

/// Service label: the Service is captured.
pub const MESH_SERVICE: &str = "aether.io/mesh-service";
/// Pod and Namespace label: in the mesh.
pub const MANAGED: &str = "aether.io/managed";
/// Service annotation: the mesh name.
pub const SERVICE: &str = "aether.io/service";
/// Service annotation: the workload's default port.
pub const PORT: &str = "aether.io/port";
/// Service annotation: what every port speaks.
pub const APP_PROTOCOL: &str = "aether.io/app-protocol";
/// Service annotation: a generated Service, whose endpoints come from the registry.
pub const GENERATED_FOR: &str = "aether.io/generated-for";
/// Pod annotation: the services that the pod calls.
pub const UPSTREAMS: &str = "config.aether.io/upstreams";
/// Pod annotation: whether all of its TCP is redirected, in place of the capture mode.
pub const REDIRECT_ALL: &str = "capture.aether.io/redirect-all";
/// Pod annotation: destination ports that are not redirected.
pub const EXCLUDE_PORTS: &str = "capture.aether.io/exclude-outbound-ports";
/// Pod annotation: destination ranges that are not redirected.
pub const EXCLUDE_RANGES: &str = "capture.aether.io/exclude-outbound-ip-ranges";
/// Pod annotation: where the pod serves.
pub const ENDPOINT_PORT: &str = "endpoint.aether.io/port";
/// Pod annotation: what it speaks.
pub const ENDPOINT_PROTOCOL: &str = "endpoint.aether.io/protocol";
/// Pod annotation: its load-balancing weight.
pub const ENDPOINT_WEIGHT: &str = "endpoint.aether.io/weight";
/// Kubernetes' label of a slice: its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Kubernetes' label of a node: its region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Kubernetes' label of a node: its zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// The name under which we write objects, as `metadata.managedFields` bears it.
pub const FIELD_MANAGER: &str = "aether";
