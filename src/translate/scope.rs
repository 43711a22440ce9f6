//! Scopes: what the pods that list their upstreams see of the mesh.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::naming;
use crate::model::{MeshPod, ServiceKey, Upstreams};
use crate::xds::Version;

/// Some services of the mesh, as one or many pods list them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// The list in one line, sorted: equal lists have equal words.
    pub words: Arc<str>,
    /// The services.
    pub listed: Arc<BTreeSet<ServiceKey>>,
    /// The key of the stem of its DNS listeners.
    pub dns_stem: Arc<str>,
}

/// Scopes by their words.
pub(super) type Scopes = BTreeMap<Arc<str>, Arc<Scope>>;

/// Those who share a route configuration and the tail of a capture listener: the pods of a
/// namespace that see the whole mesh, or one pod that lists its upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// The namespace, whose services have their bare names here.
    pub namespace: Arc<str>,
    /// The name of the route configuration.
    pub routes: Arc<str>,
    /// The key of the stem of the capture listeners.
    pub stem: Arc<str>,
    /// The same on a node proxy, where what passes through leaves from the pod's own namespace.
    pub node_stem: Arc<str>,
    /// What is seen; `None`: the whole mesh.
    pub scope: Option<Arc<Scope>>,
}

impl Scope {
    fn new(listed: &Arc<BTreeSet<ServiceKey>>, words: Arc<str>) -> Self {
        let dns_stem = format!("dns/{words}").into();
        Self { words, listed: listed.clone(), dns_stem }
    }

    /// The scope of a list: that of equal lists where there is one already.
    fn shared(listed: &Arc<BTreeSet<ServiceKey>>, scopes: &Scopes) -> Arc<Self> {
        let words: Vec<String> = listed.iter().map(ToString::to_string).collect();
        let words: Arc<str> = words.join(",").into();
        let shared = scopes.get(&words).cloned();
        shared.unwrap_or_else(|| Arc::new(Self::new(listed, words)))
    }
}

impl Caller {
    /// The caller that a pod is part of, and the key of its group.
    pub(super) fn of(pod: &MeshPod, scopes: &Scopes) -> (Arc<str>, Self) {
        let namespace = &pod.key.namespace;
        let (group, routes, scope) = match &pod.upstreams {
            Upstreams::All => (namespace.clone(), naming::routes_of(namespace), None),
            Upstreams::Listed(listed) => {
                let scope = Scope::shared(listed, scopes);
                (group_of(pod, &scope), naming::routes_of_pod(&pod.key), Some(scope))
            }
        };
        let caller = Self {
            namespace: namespace.clone(),
            routes: routes.into(),
            stem: format!("capture/{group}").into(),
            node_stem: format!("node-capture/{group}").into(),
            scope,
        };
        (group, caller)
    }
}

/// The group of a pod with a scope. Another scope is another group, since what changed in a table
/// since some generation tells nothing of what tells two tables apart.
fn group_of(pod: &MeshPod, scope: &Scope) -> Arc<str> {
    let version = Version::of(&Bytes::copy_from_slice(scope.words.as_bytes()).into());
    format!("{}@{version}", pod.key).into()
}
