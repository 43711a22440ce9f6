//! What an API server holds, and how users change it. Every change is told to whoever watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use crate::index::{Change, Id, Object, ObjectKind};
use crate::model::ServiceKey;

/// The objects of a cluster.
#[derive(Debug, Default)]
pub struct Server {
    pub services: BTreeMap<ServiceKey, Value>,
    pub pods: BTreeMap<ServiceKey, Value>,
    pub accounts: BTreeSet<ServiceKey>,
    /// What the watches have not delivered yet.
    pub feed: VecDeque<Change>,
    /// The uids of Services that users created.
    pub users: BTreeSet<String>,
    count: u64,
}

impl Server {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Stores a Service under a new resourceVersion, with what the API server adds to it.
    pub fn store(&mut self, key: &ServiceKey, mut service: Value, manager: &str) {
        let version = self.next();
        let old = self.services.get(key);
        let (uid, created, writers) = match old {
            Some(old) => {
                let meta = &old["metadata"];
                let same = meta["managedFields"].clone();
                (meta["uid"].clone(), meta["creationTimestamp"].clone(), same)
            }
            None => (json!(format!("u{version}")), json!(time(version)), json!([])),
        };
        let meta = &mut service["metadata"];
        meta["uid"] = uid;
        meta["creationTimestamp"] = created;
        meta["resourceVersion"] = version.to_string().into();
        let mut writers = writers.as_array().cloned().unwrap_or_default();
        if !writers.iter().any(|writer| writer["manager"] == manager) {
            writers.push(json!({ "manager": manager, "operation": "Update" }));
        }
        meta["managedFields"] = writers.into();
        let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
        if kind == "ExternalName" {
            service["spec"]["clusterIP"] = Value::Null;
        } else if service["spec"]["clusterIP"].is_null() {
            let ip = format!("10.96.{}.{}", version / 250 % 250, 1 + version % 250);
            service["spec"]["clusterIP"] = ip.into();
        }
        self.services.insert(key.clone(), service);
        self.tell(key);
    }

    /// A user creates a Service, or replaces one that another user made.
    pub fn user_puts(&mut self, key: &ServiceKey, service: Value) {
        self.store(key, service, "kubectl");
        let uid = self.services[key]["metadata"]["uid"].as_str().unwrap().to_owned();
        self.users.insert(uid);
    }

    /// A user edits whatever is there.
    pub fn user_edits(&mut self, key: &ServiceKey, edit: impl FnOnce(&mut Value)) {
        if let Some(mut service) = self.services.get(key).cloned() {
            edit(&mut service);
            self.store(key, service, "kubectl-edit");
        }
    }

    pub fn removes(&mut self, key: &ServiceKey) {
        if self.services.remove(key).is_some() {
            self.count += 1;
            self.tell(key);
        }
    }

    /// The watch of labelled Services, which are trimmed on the way in the real source.
    fn tell(&mut self, key: &ServiceKey) {
        let id = id(ObjectKind::Service, key);
        let labelled = |service: &&Value| {
            service.pointer("/metadata/labels/aether.io~1mesh-service") == Some(&json!("true"))
        };
        let change = match self.services.get(key).filter(labelled) {
            Some(service) => {
                let service = serde_json::from_value(service.clone()).unwrap();
                Change::Put { id, object: Object::Service(Box::new(service)), origin: None }
            }
            None => Change::Remove(id),
        };
        self.feed.push_back(change);
    }

    pub fn put_pod(&mut self, key: &ServiceKey, mut pod: Value) {
        let created = time(self.next());
        let old = self.pods.get(key).map(|pod| pod["metadata"]["creationTimestamp"].clone());
        pod["metadata"]["namespace"] = (*key.namespace).into();
        pod["metadata"]["name"] = (*key.name).into();
        pod["metadata"]["creationTimestamp"] = old.unwrap_or_else(|| created.into());
        self.pods.insert(key.clone(), pod.clone());
        let object = Object::Pod(Box::new(serde_json::from_value(pod).unwrap()));
        self.feed.push_back(Change::Put { id: id(ObjectKind::Pod, key), object, origin: None });
    }

    pub fn remove_pod(&mut self, key: &ServiceKey) {
        if self.pods.remove(key).is_some() {
            self.feed.push_back(Change::Remove(id(ObjectKind::Pod, key)));
        }
    }

    pub fn account(&mut self, key: &ServiceKey, there: bool) {
        let id = id(ObjectKind::ServiceAccount, key);
        if there && self.accounts.insert(key.clone()) {
            let object = Object::ServiceAccount(Box::default());
            self.feed.push_back(Change::Put { id, object, origin: None });
        } else if !there && self.accounts.remove(key) {
            self.feed.push_back(Change::Remove(id));
        }
    }
}

fn id(kind: ObjectKind, key: &ServiceKey) -> Id {
    Id { kind, namespace: key.namespace.clone(), name: key.name.clone() }
}

/// A time for each version, in order.
fn time(version: u64) -> String {
    format!("2026-11-{:02}T{:02}:{:02}:00Z", 1 + version / 1440, version / 60 % 24, version % 60)
}

/// A running managed pod of an account; `more` is laid over its annotations.
pub fn pod(account: &str, annotations: &Value) -> Value {
    json!({
        "metadata": { "labels": { "aether.io/managed": "true" }, "annotations": annotations },
        "spec": { "serviceAccountName": account, "containers": [] },
        "status": { "phase": "Running", "podIP": "10.244.0.9" },
    })
}

/// A user's Service.
pub fn service(key: &ServiceKey, labelled: bool, annotations: &Value) -> Value {
    json!({
        "metadata": {
            "namespace": &*key.namespace, "name": &*key.name,
            "labels": if labelled { json!({ "aether.io/mesh-service": "true" }) } else { json!({}) },
            "annotations": annotations,
        },
        "spec": { "selector": { "app": "x" }, "ports": [{ "port": 80 }] },
    })
}
