//! Kubernetes objects, as short as a test wants them.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// An object, built up step by step. What is not said is absent, as in a hand-written manifest.
#[derive(Debug, Clone)]
pub struct Object {
    value: Value,
}

impl Object {
    fn new(api: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let object =
            Self { value: json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}}) };
        match namespace {
            Some(namespace) => object.with(&["metadata", "namespace"], namespace),
            None => object,
        }
    }

    /// A Namespace.
    pub fn namespace(name: &str) -> Self {
        Self::new("v1", "Namespace", None, name)
    }

    /// A Node in this zone and region.
    pub fn node(name: &str, region: &str, zone: &str) -> Self {
        let node = Self::new("v1", "Node", None, name);
        let node = node.label("topology.kubernetes.io/region", region);
        node.label("topology.kubernetes.io/zone", zone)
    }

    /// A ServiceAccount.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new("v1", "ServiceAccount", Some(namespace), name)
    }

    /// A mesh Service (labelled) with this ClusterIP, without ports.
    pub fn service(namespace: &str, name: &str, cluster_ip: &str) -> Self {
        Self::new("v1", "Service", Some(namespace), name)
            .label("aether.io/mesh-service", "true")
            .with(&["spec", "clusterIP"], cluster_ip)
            .with(&["spec", "clusterIPs"], json!([cluster_ip]))
            .with(&["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z")
    }

    /// With one more ClusterIP (the other family's).
    pub fn also(self, cluster_ip: &str) -> Self {
        self.push(&["spec", "clusterIPs"], json!(cluster_ip))
    }

    /// A Service with one more TCP port. An empty protocol: without an `appProtocol`.
    pub fn port(self, name: &str, port: u16, app_protocol: &str) -> Self {
        let mut entry = json!({"name": name, "port": port, "protocol": "TCP"});
        if !app_protocol.is_empty() {
            *place(&mut entry, &["appProtocol"]) = app_protocol.into();
        }
        self.push(&["spec", "ports"], entry)
    }

    /// An EndpointSlice of a Service, `<service>-<suffix>`, without ports and endpoints.
    pub fn slice(namespace: &str, service: &str, suffix: &str, v6: bool) -> Self {
        let name = format!("{service}-{suffix}");
        Self::new("discovery.k8s.io/v1", "EndpointSlice", Some(namespace), &name)
            .label("kubernetes.io/service-name", service)
            .with(&["addressType"], if v6 { "IPv6" } else { "IPv4" })
            .with(&["ports"], json!([]))
            .with(&["endpoints"], json!([]))
    }

    /// A slice with one more port: the name of the Service's port, and where the pods serve it.
    pub fn target(self, name: &str, port: u16) -> Self {
        self.push(&["ports"], json!({"name": name, "port": port, "protocol": "TCP"}))
    }

    /// A slice with one more endpoint that is ready.
    pub fn endpoint(self, address: IpAddr) -> Self {
        self.endpoint_that(address, &json!({"ready": true, "serving": true, "terminating": false}))
    }

    /// A slice with one more endpoint in these conditions.
    pub fn endpoint_that(self, address: IpAddr, conditions: &Value) -> Self {
        self.push(&["endpoints"], json!({"addresses": [address], "conditions": conditions}))
    }

    /// A managed Pod that runs and is ready, on this node, with these addresses.
    pub fn pod(namespace: &str, name: &str, node: &str, addresses: &[IpAddr]) -> Self {
        let ips: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        let mut pod = Self::new("v1", "Pod", Some(namespace), name)
            .label("aether.io/managed", "true")
            .with(&["spec", "nodeName"], node)
            .with(&["spec", "serviceAccountName"], "default")
            .with(&["spec", "containers"], json!([{"name": "app", "image": "app"}]))
            .with(&["status", "phase"], "Running")
            .with(&["status", "conditions"], json!([{"type": "Ready", "status": "True"}]))
            .with(&["status", "podIPs"], ips);
        if let Some(first) = addresses.first() {
            pod = pod.with(&["status", "podIP"], json!(first));
        }
        pod
    }

    /// With this label.
    pub fn label(self, key: &str, value: &str) -> Self {
        self.with(&["metadata", "labels", key], value)
    }

    /// With this annotation.
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.with(&["metadata", "annotations", key], value)
    }

    /// With this value at this path, whatever stood there.
    pub fn with(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        *place(&mut self.value, path) = value.into();
        self
    }

    /// With one more value in the array at this path.
    pub fn push(mut self, path: &[&str], value: Value) -> Self {
        let place = place(&mut self.value, path);
        match place {
            Value::Array(values) => values.push(value),
            other => *other = json!([value]),
        }
        self
    }

    /// It as JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// It as a YAML document (JSON is YAML), with a line feed at its end.
    pub(super) fn document(&self) -> String {
        format!("{:#}\n", self.value)
    }
}

/// The value at this path; what is missing on the way becomes an object.
fn place<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Value {
    path.iter().fold(value, |at, key| {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        match at {
            Value::Object(fields) => fields.entry(*key).or_insert(Value::Null),
            other => other,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn what_is_not_said_is_absent() {
        let service = Object::service("shop", "web", "10.96.0.1").port("http", 80, "");
        assert_eq!(
            service.value,
            serde_json::json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": "web",
                    "namespace": "shop",
                    "labels": {"aether.io/mesh-service": "true"},
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {
                    "clusterIP": "10.96.0.1",
                    "clusterIPs": ["10.96.0.1"],
                    "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
                },
            })
        );
    }
}
