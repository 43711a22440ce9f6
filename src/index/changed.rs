//! What has changed since the last projection, so that a round of work is as large as the change
//! and not as the mesh.

use std::collections::BTreeSet;

use super::store::Name;

/// The parts of a projection that must be made anew. Marking too much costs time and nothing else:
/// what is made anew and comes out equal stays the allocation that it was.
#[derive(Debug, Clone, Default)]
pub(super) struct Changed {
    /// Which Services there are, or what one of them claims.
    pub claims: bool,
    /// The managed pods, or what is found about pods.
    pub pods: bool,
    /// Every service: the nodes, to which localities belong, have changed.
    pub everywhere: bool,
    /// The Services, by their own names, whose endpoints may have changed.
    pub services: BTreeSet<Name>,
    /// The namespaces whose pods have changed: the registry serves there, and weights come from
    /// the pods behind endpoints.
    pub namespaces: BTreeSet<std::sync::Arc<str>>,
}

impl Changed {
    /// Whether the endpoints of a Service may be others.
    pub(super) fn concerns(&self, name: &Name) -> bool {
        self.everywhere || self.services.contains(name) || self.namespaces.contains(&name.0)
    }
}
