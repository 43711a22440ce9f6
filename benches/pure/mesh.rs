//! A mesh as objects, and changes of it.

use aether::index::{Change, Id, Object, ObjectKind};
use serde_json::{Value, json};

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One endpoint gets another address.
    Endpoint,
    /// An HTTP Service is added, with its endpoints.
    Http,
    /// A TCP Service is added, with its endpoints.
    Tcp,
    /// A Service is removed, with its endpoints.
    Removed,
    /// A pod comes.
    Pod,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Endpoint, Self::Http, Self::Tcp, Self::Removed, Self::Pod];

    /// Whether a stream is sent something each time: of what goes it may be told no more than the name, and other
    /// pods are none of its business.
    pub fn is_sent(self) -> bool {
        !matches!(self, Self::Removed | Self::Pod)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Endpoint => "an endpoint moves",
            Self::Http => "an HTTP service comes",
            Self::Tcp => "a TCP service comes",
            Self::Removed => "a service goes",
            Self::Pod => "a pod comes",
        }
    }
}

/// Some services of 5 endpoints each in 100 namespaces, every fifth TCP; a hundred nodes in three zones; and a pod, or
/// as many as services.
#[derive(Debug)]
pub struct Mesh {
    services: usize,
    pods: usize,
    changes: usize,
}

impl Mesh {
    /// A mesh of this many services, for one kind of change.
    pub fn new(services: usize, what: What) -> Self {
        let pods = if what == What::Pod { services } else { 1 };
        Self { services, pods, changes: 0 }
    }

    /// All objects.
    pub fn all(&self) -> Vec<Change> {
        let mut all: Vec<Change> = (0..100).map(node).collect();
        all.extend((0..self.pods).map(pod));
        for n in 0..self.services {
            all.extend([service(n), slice(n, 0)]);
        }
        all
    }

    /// A change that was not made before.
    pub fn change(&mut self, what: What) -> Vec<Change> {
        self.changes += 1;
        match what {
            // Each a service that speaks HTTP, which has one assignment.
            What::Endpoint => vec![slice(self.changes * 5 % self.services, self.changes)],
            What::Http => {
                let next = self.services + usize::from(self.services % 5 == 4);
                self.services = next + 1;
                vec![service(next), slice(next, 0)]
            }
            What::Tcp => {
                let next = self.services / 5 * 5 + 4;
                self.services = next + 1;
                vec![service(next), slice(next, 0)]
            }
            What::Removed => {
                self.services -= 1;
                [service(self.services), slice(self.services, 0)].map(removed).into()
            }
            What::Pod => {
                self.pods += 1;
                vec![pod(self.pods - 1)]
            }
        }
    }
}

fn put(kind: ObjectKind, namespace: &str, name: &str, object: Object) -> Change {
    let id = Id { kind, namespace: namespace.into(), name: name.into() };
    Change::Put { id, object, origin: None }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node(n: usize) -> Change {
    let zone = format!("here-{}", n % 3);
    let name = format!("node-{n}");
    let labels =
        json!({ "topology.kubernetes.io/region": "here", "topology.kubernetes.io/zone": zone });
    let node = read(json!({ "metadata": { "name": name, "labels": labels } }));
    put(ObjectKind::Node, "", &name, Object::Node(node))
}

/// The first one is the one whose stream it is.
fn pod(n: usize) -> Change {
    let (namespace, name) = (format!("team-{}", n % 100), format!("caller-{n}"));
    let ip = format!("10.{}.{}.{}", 192 + (n >> 16), n >> 8 & 0xff, n & 0xff);
    let pod = read(json!({
        "metadata": { "name": name, "namespace": namespace, "labels": { "aether.io/managed": "true" } },
        "spec": { "nodeName": format!("node-{}", n % 100), "containers": [] },
        "status": { "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] }
    }));
    put(ObjectKind::Pod, &namespace, &name, Object::Pod(pod))
}

fn removed(change: Change) -> Change {
    match change {
        Change::Put { id, .. } | Change::Remove(id) => Change::Remove(id),
    }
}

fn names(n: usize) -> (String, String) {
    (format!("team-{}", n % 100), format!("service-{n}"))
}

fn service(n: usize) -> Change {
    let (namespace, name) = names(n);
    let ip = format!("10.{}.{}.{}", 96 + (n >> 16), n >> 8 & 0xff, n & 0xff);
    let (port, speaks) = if n % 5 == 4 { (5432, "postgres") } else { (80, "http2") };
    let service = read(json!({
        "metadata": {
            "name": name, "namespace": namespace, "labels": { "aether.io/mesh-service": "true" }
        },
        "spec": {
            "clusterIP": ip, "clusterIPs": [ip],
            "ports": [{ "name": "main", "port": port, "protocol": "TCP", "appProtocol": speaks }]
        }
    }));
    put(ObjectKind::Service, &namespace, &name, Object::Service(service))
}

/// The slice of a service; its first endpoint has an address that only `moved` times gave it.
fn slice(n: usize, moved: usize) -> Change {
    let (namespace, service) = names(n);
    let address = |k: usize| format!("10.{}.{}.{}", 128 + (k >> 16), k >> 8 & 0xff, k & 0xff);
    let endpoints: Vec<Value> = (0..5)
        .map(|k| {
            let ip = if k == 0 && moved > 0 {
                format!("10.250.{}.{}", moved >> 8 & 0xff, moved & 0xff)
            } else {
                address(n * 5 + k)
            };
            json!({
                "addresses": [ip], "nodeName": format!("node-{}", (n + k) % 100),
                "conditions": { "ready": true, "serving": true, "terminating": false }
            })
        })
        .collect();
    let port = if n % 5 == 4 { 5432 } else { 80 };
    let name = format!("{service}-abcde");
    let slice = read(json!({
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": { "kubernetes.io/service-name": service }
        },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{ "name": "main", "port": port, "protocol": "TCP" }]
    }));
    put(ObjectKind::EndpointSlice, &namespace, &name, Object::EndpointSlice(slice))
}
