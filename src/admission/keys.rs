//! The names that the contract fixes.

/// Pod annotation: `false`, and nothing else, opts out of the identity gate.
pub const IDENTITY_GATE: &str = "aether.io/identity-gate";
/// Pod annotation: the pod serves on a Unix socket, `<volume>/<file>`.
pub const UDS_SOCKET: &str = "endpoint.aether.io/uds-socket";
/// Kubernetes' annotation of a mirror pod, the API server's picture of a kubelet's static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// Kubernetes' label of a node's operating system, as a node selector names it.
pub const OS: &str = "kubernetes.io/os";
/// The same before Kubernetes 1.14; node selectors still use it.
pub const OLD_OS: &str = "beta.kubernetes.io/os";

/// The CSI driver of the volumes that carry Unix sockets.
pub const CARRIER_DRIVER: &str = "csi.aether.io";
/// The CSI driver of the SPIFFE Workload API's socket.
pub const SPIFFE_DRIVER: &str = "csi.spiffe.io";

/// The identity gate's container.
pub const GATE_CONTAINER: &str = "aether-identity-ready";
/// The identity gate's volume.
pub const GATE_VOLUME: &str = "aether-identity-gate-spiffe";
/// The first word of the identity gate's command.
pub const GATE_COMMAND: &str = "/identity-ready";
/// The option of the command that names the Workload API's socket.
pub const GATE_SOCKET: &str = "--spire-workload-socket=";
/// The option of the command that bounds the wait.
pub const GATE_TIMEOUT: &str = "--timeout=";
