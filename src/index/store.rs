//! The index: facts by object, replaced one by one as objects change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::facts::{NodeFacts, PodFacts, ServiceFacts, SliceFacts};
use super::{Change, Id, Object, ObjectKind, Report, Settings, keys, read};
use crate::model::Finding;

/// Namespace and name.
pub(super) type Name = (Arc<str>, Arc<str>);

/// A slice: its facts, and what was wrong with it.
pub(super) type Slice = (Arc<SliceFacts>, Vec<Finding>);

/// All that is known of the objects at one time.
#[derive(Debug, Default)]
pub struct Index {
    pub(super) settings: Settings,
    /// Whether a namespace's label puts its new pods into the mesh.
    pub(super) namespaces: BTreeMap<Arc<str>, bool>,
    pub(super) nodes: HashMap<Arc<str>, NodeFacts>,
    pub(super) services: BTreeMap<Name, Arc<ServiceFacts>>,
    /// Slices by name, by the Service that they belong to.
    pub(super) slices: BTreeMap<Name, BTreeMap<Arc<str>, Slice>>,
    /// The Service of a slice, which a change of its label may move.
    owners: HashMap<Name, Arc<str>>,
    pub(super) pods: BTreeMap<Name, Arc<PodFacts>>,
    /// What was wrong with Services and pods.
    pub(super) findings: BTreeMap<Id, Vec<Finding>>,
}

impl Index {
    /// An empty index.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes one change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Put { id, object, origin } => self.put(&id, &object, origin),
            Change::Remove(id) => self.remove(&id),
        }
    }

    fn put(&mut self, id: &Id, object: &Object, origin: Option<Arc<str>>) {
        let name = (id.namespace.clone(), id.name.clone());
        let mut report = Report::new(id.object_ref(), origin.clone());
        match object {
            Object::Namespace(namespace) => {
                let labels = namespace.metadata.labels.as_ref();
                let managed =
                    labels.and_then(|l| l.get(keys::MANAGED)).is_some_and(|v| v == "true");
                self.namespaces.insert(id.name.clone(), managed);
            }
            Object::Node(node) => {
                self.nodes.insert(id.name.clone(), read::node(node));
            }
            // What a ServiceAccount is for, its pods say themselves.
            Object::ServiceAccount(_) => {}
            Object::Service(service) => {
                match read::service(service, &id.object_ref(), origin, &mut report) {
                    Some(facts) => self.services.insert(name, Arc::new(facts)),
                    None => self.services.remove(&name),
                };
                self.found(id, report);
            }
            Object::EndpointSlice(slice) => {
                self.remove_slice(&name);
                if let Some(service) = read::service_of(slice).map(Arc::from) {
                    let facts = Arc::new(read::slice(slice, &mut report));
                    let of_service = (name.0.clone(), Arc::clone(&service));
                    let slices = self.slices.entry(of_service).or_default();
                    slices.insert(name.1.clone(), (facts, report.into_findings()));
                    self.owners.insert(name, service);
                }
            }
            Object::Pod(pod) => {
                let facts = read::pod(pod, &id.object_ref(), origin, &mut report);
                if facts.managed == Some(true) {
                    self.found(id, report);
                } else {
                    self.findings.remove(id);
                }
                self.pods.insert(name, Arc::new(facts));
            }
        }
    }

    fn found(&mut self, id: &Id, report: Report) {
        let found = report.into_findings();
        if found.is_empty() {
            self.findings.remove(id);
        } else {
            self.findings.insert(id.clone(), found);
        }
    }

    fn remove(&mut self, id: &Id) {
        let name = (id.namespace.clone(), id.name.clone());
        self.findings.remove(id);
        match id.kind {
            ObjectKind::Namespace => drop(self.namespaces.remove(&id.name)),
            ObjectKind::Node => drop(self.nodes.remove(&id.name)),
            ObjectKind::ServiceAccount => {}
            ObjectKind::Service => drop(self.services.remove(&name)),
            ObjectKind::EndpointSlice => self.remove_slice(&name),
            ObjectKind::Pod => drop(self.pods.remove(&name)),
        }
    }

    fn remove_slice(&mut self, name: &Name) {
        let Some(service) = self.owners.remove(name) else { return };
        let of_service = (name.0.clone(), service);
        if let Some(slices) = self.slices.get_mut(&of_service) {
            slices.remove(&name.1);
            if slices.is_empty() {
                self.slices.remove(&of_service);
            }
        }
    }
}
