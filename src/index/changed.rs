//! What has changed since the last projection, so that a round of work is as large as the change
//! and not as the mesh.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::store::{Index, Name};
use super::{Id, ObjectKind};
use crate::model::ServiceKey;

/// The parts of a projection that must be made anew. Marking too much costs time and nothing else:
/// what is made anew and comes out equal stays the allocation that it was.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// What was made last is lost: all must be made.
    pub lost: bool,
    /// The nodes, to which localities belong: every service and every pod may be another.
    pub nodes: bool,
    /// The Services that came, went or claim something else, by their own names.
    pub claims: BTreeSet<Name>,
    /// The Services whose endpoints may have changed, by their own names.
    pub services: BTreeSet<Name>,
    /// The services for which other pods serve, or the same ones otherwise, in the registry.
    pub registry: BTreeSet<ServiceKey>,
    /// The namespaces in which a pod has another weight, which endpoints of slices have from it.
    pub weights: BTreeSet<Arc<str>>,
    /// The pods that came, went or are others.
    pub pods: BTreeSet<Name>,
    /// The namespaces that put their pods into the mesh, or do so no more.
    pub namespaces: BTreeSet<Arc<str>>,
    /// The objects in which something else is wrong than before, or is of no concern any more.
    pub read: BTreeSet<Id>,
}

impl Changed {
    /// That everything has, since what was made last is lost.
    pub(super) fn lost() -> Self {
        Self { lost: true, ..Self::default() }
    }

    /// That everything of an index has.
    pub(super) fn everything(index: &Index) -> Self {
        Self {
            nodes: true,
            claims: index.services.keys().cloned().collect(),
            pods: index.pods.keys().cloned().collect(),
            read: index.findings.keys().cloned().collect(),
            ..Self::default()
        }
    }
}

impl Index {
    /// The slices of a Service are a concern, or are no more.
    pub(super) fn slices_concern(&mut self, service: &Name) {
        let slices = self.slices.get(service).into_iter().flat_map(|slices| slices.keys());
        let ids = slices.map(|slice| Id {
            kind: ObjectKind::EndpointSlice,
            namespace: service.0.clone(),
            name: slice.clone(),
        });
        self.changed.read.extend(ids);
    }
}
