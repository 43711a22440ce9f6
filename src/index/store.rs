//! The index: facts by object, replaced one by one as objects change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use imbl::OrdMap;

use super::changed::Changed;
use super::endpoints::Serving;
use super::facts::{NodeFacts, OtherService, PodFacts, ServiceFacts, SliceFacts};
use super::project::Memo;
use super::registry::Registered;
use super::{Change, Id, Object, ObjectKind, Report, Settings, keys, read};
use crate::model::Finding;

/// Namespace and name.
pub(super) type Name = (Arc<str>, Arc<str>);

/// All that is known of the objects at one time.
#[derive(Debug, Default)]
pub struct Index {
    pub(super) settings: Settings,
    /// Whether a namespace's label puts its new pods into the mesh.
    pub(super) namespaces: BTreeMap<Arc<str>, bool>,
    pub(super) nodes: HashMap<Arc<str>, NodeFacts>,
    pub(super) services: OrdMap<Name, Arc<ServiceFacts>>,
    /// The Services that are not captured.
    pub(super) others: OrdMap<Name, Arc<OtherService>>,
    /// Slices by name, by the Service that they belong to.
    pub(super) slices: HashMap<Name, BTreeMap<Arc<str>, SliceFacts>>,
    /// The Service of a slice, which a change of its label may move.
    owners: HashMap<Name, Arc<str>>,
    pub(super) pods: BTreeMap<Name, Arc<PodFacts>>,
    /// Those of them to which the registry sends.
    pub(super) serving: Serving,
    /// What was wrong with objects, where anything was.
    pub(super) findings: BTreeMap<Id, Found>,
    pub(super) registered: Registered,
    pub(super) changed: Changed,
    pub(super) memo: Memo,
}

/// What was wrong with an object.
#[derive(Debug)]
pub(super) struct Found {
    /// Of a slice: the Service that it belongs to.
    pub service: Option<Name>,
    pub findings: Vec<Finding>,
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
                if self.namespaces.insert(id.name.clone(), managed) != Some(managed) {
                    self.changed.namespaces.insert(id.name.clone());
                }
                let closing = namespace.metadata.deletion_timestamp.is_some();
                self.registered.namespace(&id.name, closing);
            }
            Object::Node(node) => {
                let facts = read::node(node);
                let old = self.nodes.insert(id.name.clone(), facts.clone());
                self.changed.nodes |= old != Some(facts);
            }
            // What a ServiceAccount is for, its pods say themselves.
            Object::ServiceAccount(_) => self.registered.account(&name, true),
            Object::Service(service) => {
                self.registered.service(&name, read::generated(service));
                let facts = read::service(service, &id.object_ref(), origin, &mut report);
                if facts.is_none() {
                    let other = read::other_service(service, id.object_ref());
                    self.others.insert(name.clone(), Arc::new(other));
                } else {
                    self.others.remove(&name);
                }
                self.put_service(name, facts.map(Arc::new));
                self.found(id, None, report);
            }
            Object::EndpointSlice(slice) => {
                self.remove_slice(&name);
                if let Some(service) = read::service_of(slice).map(Arc::from) {
                    let of_service = (name.0.clone(), Arc::clone(&service));
                    let facts = read::slice(slice, &mut report);
                    self.found(id, Some(of_service.clone()), report);
                    self.changed.services.insert(of_service.clone());
                    self.slices.entry(of_service).or_default().insert(name.1.clone(), facts);
                    self.owners.insert(name, service);
                } else {
                    self.nothing_found(id);
                }
            }
            Object::Pod(pod) => {
                let facts = read::pod(pod, &id.object_ref(), origin, &mut report);
                if facts.managed == Some(true) {
                    self.found(id, None, report);
                } else {
                    self.nothing_found(id);
                }
                self.put_pod(name, facts);
            }
        }
    }

    fn put_service(&mut self, name: Name, facts: Option<Arc<ServiceFacts>>) {
        let old = self.services.get(&name);
        if old == facts.as_ref() {
            return;
        }
        if old.is_some() != facts.is_some() {
            self.slices_concern(&name);
        }
        self.changed.claims.insert(name.clone());
        self.registered.changed.insert(name.0.clone());
        match facts {
            Some(facts) => self.services.insert(name, facts),
            None => self.services.remove(&name),
        };
    }

    fn found(&mut self, id: &Id, service: Option<Name>, report: Report) {
        let findings = report.into_findings();
        if findings.is_empty() {
            self.nothing_found(id);
        } else {
            self.changed.read.insert(id.clone());
            self.findings.insert(id.clone(), Found { service, findings });
        }
    }

    fn nothing_found(&mut self, id: &Id) {
        if self.findings.remove(id).is_some() {
            self.changed.read.insert(id.clone());
        }
    }

    fn remove(&mut self, id: &Id) {
        let name = (id.namespace.clone(), id.name.clone());
        self.nothing_found(id);
        match id.kind {
            ObjectKind::Namespace => {
                if self.namespaces.remove(&id.name).is_some() {
                    self.changed.namespaces.insert(id.name.clone());
                }
                self.registered.namespace(&id.name, false);
            }
            ObjectKind::Node => {
                self.changed.nodes |= self.nodes.remove(&id.name).is_some();
            }
            ObjectKind::ServiceAccount => self.registered.account(&name, false),
            ObjectKind::Service => {
                self.registered.service(&name, None);
                self.others.remove(&name);
                self.put_service(name, None);
            }
            ObjectKind::EndpointSlice => self.remove_slice(&name),
            ObjectKind::Pod => self.remove_pod(&name),
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
        self.changed.services.insert(of_service);
    }
}
