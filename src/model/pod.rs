//! Managed pods: whose proxies are served.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Place, PodKey, ServiceKey};

/// The services that a pod calls, by `config.aether.io/upstreams`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Upstreams {
    /// No annotation: all of them.
    #[default]
    All,
    /// What is listed; empty: none.
    Listed(Arc<BTreeSet<ServiceKey>>),
}

impl Upstreams {
    /// Whether the pod calls a service.
    pub fn take_in(&self, key: &ServiceKey) -> bool {
        match self {
            Self::All => true,
            Self::Listed(listed) => listed.contains(key),
        }
    }
}

/// A pod whose own label puts it into the mesh.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MeshPod {
    /// The pod.
    pub key: PodKey,
    /// Its uid, by which its network namespace is pinned; `None` in a manifest that names none.
    pub uid: Option<Arc<str>>,
    /// Where it runs.
    pub place: Place,
    /// Whether it has an IPv6 address, so that `[::1]` is redirected to as well.
    pub ipv6: bool,
    /// The ServiceAccount that it runs as, in its own namespace.
    pub service_account: Arc<str>,
    /// Which services it calls.
    pub upstreams: Upstreams,
}
