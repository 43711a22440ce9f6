//! The registry: which workloads run as which ServiceAccount, and which Services stand for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the generator of mesh Services decides by, namespace by namespace. Namespaces never
/// touched are not in it. Those that did not change since the last one are the same allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registry {
    /// By namespace.
    pub namespaces: BTreeMap<Arc<str>, Arc<Accounts>>,
}

/// One namespace of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts {
    /// The namespace is being deleted: nothing can be created in it.
    pub closing: bool,
    /// The ServiceAccounts that exist.
    pub accounts: BTreeSet<Arc<str>>,
    /// What runs, by ServiceAccount. An account that is not here holds no key.
    pub running: BTreeMap<Arc<str>, Workload>,
    /// The ServiceAccounts of pods that run, or may do so without anyone's doing.
    pub present: BTreeSet<Arc<str>>,
    /// The Services of users by the mesh name that they claim: the first that does, by its name.
    pub claimed: BTreeMap<Arc<str>, Arc<str>>,
    /// The Services that were generated, by their own name.
    pub generated: BTreeMap<Arc<str>, Generated>,
}

impl Accounts {
    /// Whether there is nothing in it that a generator looks at.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
            && self.present.is_empty()
            && self.claimed.is_empty()
            && self.generated.is_empty()
    }
}

/// What the running pods of a ServiceAccount say of where and how they serve. Where they do not
/// agree, the oldest pod's word counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// `endpoint.aether.io/port`; `None` where the oldest pod has none.
    pub port: Said<u16>,
    /// `endpoint.aether.io/protocol`; `None` where the oldest pod has none.
    pub protocol: Said<Arc<str>>,
}

/// A value of the oldest pod, and a pod that says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<T> {
    /// The value that counts.
    pub value: Option<T>,
    /// The oldest pod.
    pub by: Arc<str>,
    /// The oldest of those that have another value, and that value.
    pub otherwise: Option<(Arc<str>, Option<T>)>,
}

/// A Service that was generated, as far as the generator wants it to be one thing or the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Its uid.
    pub uid: Arc<str>,
    /// It is being deleted.
    pub deleting: bool,
    /// It became headless, which no update can undo.
    pub headless: bool,
    /// Its type, family policy, selector and ports are those of a generated Service.
    pub plain: bool,
    /// `aether.io/service`.
    pub mesh_name: Option<Arc<str>>,
    /// `aether.io/port`.
    pub port: Option<Arc<str>>,
    /// `aether.io/app-protocol`.
    pub protocol: Option<Arc<str>>,
}
