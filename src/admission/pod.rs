//! The fields of a pod that matter here, borrowed from its JSON. Absent and null are the same, as
//! they are to Kubernetes; an empty list or map is neither. A label or annotation that is null is
//! one that is empty.

use serde_json::{Map, Value};

use crate::model::quoted;

/// A JSON object.
pub type Object = Map<String, Value>;

/// A field of another type than a pod's. The API server never sends one; a file may hold one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: it is {found}, and {expected} is expected")]
pub struct Shape {
    /// The field's path in the pod.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What a pod has there.
    pub expected: &'static str,
}

/// The fields of a pod that decide.
#[derive(Debug, Clone, Copy)]
pub struct Pod<'a> {
    /// `metadata.name`, or empty.
    pub name: &'a str,
    /// `metadata.generateName`, or empty.
    pub generate_name: &'a str,
    /// `metadata.labels`.
    pub labels: Option<&'a Object>,
    /// `metadata.annotations`.
    pub annotations: Option<&'a Object>,
    /// `spec.hostNetwork`.
    pub host_network: bool,
    /// `spec.dnsPolicy`, or empty.
    pub dns_policy: &'a str,
    /// `spec.dnsConfig.options`: objects.
    pub dns_options: &'a [Value],
    /// `spec.os.name`, or empty.
    pub os: &'a str,
    /// `spec.nodeSelector`.
    pub node_selector: Option<&'a Object>,
    /// `spec.securityContext.fsGroup` is set; 0 counts.
    pub fs_group: bool,
    /// `spec.containers`: objects.
    pub containers: &'a [Value],
    /// `spec.initContainers`: objects.
    pub init_containers: &'a [Value],
    /// `spec.volumes`: objects.
    pub volumes: &'a [Value],
}

impl<'a> Pod<'a> {
    /// Looks at a pod.
    ///
    /// # Errors
    /// Where a field that matters has another type than a pod's.
    pub fn read(pod: &'a Value) -> Result<Self, Shape> {
        let Value::Object(pod) = pod else { return Err(shape("", pod, "a pod")) };
        let metadata = object(Some(pod), "metadata", "metadata")?;
        let spec = object(Some(pod), "spec", "spec")?;
        let dns = object(spec, "dnsConfig", "spec.dnsConfig")?;
        let security = object(spec, "securityContext", "spec.securityContext")?;
        let os = object(spec, "os", "spec.os")?;
        Ok(Self {
            name: text(metadata, "name", "metadata.name")?,
            generate_name: text(metadata, "generateName", "metadata.generateName")?,
            labels: texts(metadata, "labels", "metadata.labels")?,
            annotations: texts(metadata, "annotations", "metadata.annotations")?,
            host_network: truth(spec, "hostNetwork", "spec.hostNetwork")?,
            dns_policy: text(spec, "dnsPolicy", "spec.dnsPolicy")?,
            dns_options: objects(dns, "options", "spec.dnsConfig.options")?,
            os: text(os, "name", "spec.os.name")?,
            node_selector: object(spec, "nodeSelector", "spec.nodeSelector")?,
            fs_group: field(security, "fsGroup").is_some(),
            containers: objects(spec, "containers", "spec.containers")?,
            init_containers: objects(spec, "initContainers", "spec.initContainers")?,
            volumes: objects(spec, "volumes", "spec.volumes")?,
        })
    }

    /// A label's value, where it is there. A null one is the empty text, as to the API server.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels?.get(key).map(|value| value.as_str().unwrap_or_default())
    }

    /// An annotation's value, likewise.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations?.get(key).map(|value| value.as_str().unwrap_or_default())
    }

    /// How a message calls it: a pod of a controller has no name yet.
    pub fn called(&self) -> String {
        match (self.name, self.generate_name) {
            ("", "") => "(without a name)".to_owned(),
            ("", start) => format!("{start}*"),
            (name, _) => name.to_owned(),
        }
    }
}

/// The name of a container, volume or option, or empty.
pub fn name_of(object: &Value) -> &str {
    object.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn shape(field: &'static str, found: &Value, expected: &'static str) -> Shape {
    Shape { field, found: quoted(&found.to_string()), expected }
}

/// A field that is there and not null.
fn field<'a>(of: Option<&'a Object>, key: &str) -> Option<&'a Value> {
    of?.get(key).filter(|value| !value.is_null())
}

fn object<'a>(
    of: Option<&'a Object>,
    key: &str,
    path: &'static str,
) -> Result<Option<&'a Object>, Shape> {
    match field(of, key) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(shape(path, other, "a map")),
    }
}

/// A map from texts to texts.
fn texts<'a>(
    of: Option<&'a Object>,
    key: &str,
    path: &'static str,
) -> Result<Option<&'a Object>, Shape> {
    let map = object(of, key, path)?;
    let other = map.into_iter().flatten().find(|(_, value)| !value.is_string() && !value.is_null());
    other.map_or(Ok(map), |(key, value)| {
        let found = quoted(&format!("{key}: {value}"));
        Err(Shape { field: path, found, expected: "a text for each key (in quotes)" })
    })
}

fn text<'a>(of: Option<&'a Object>, key: &str, path: &'static str) -> Result<&'a str, Shape> {
    match field(of, key) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(shape(path, other, "a text")),
    }
}

fn truth(of: Option<&Object>, key: &str, path: &'static str) -> Result<bool, Shape> {
    match field(of, key) {
        None => Ok(false),
        Some(Value::Bool(truth)) => Ok(*truth),
        Some(other) => Err(shape(path, other, "true or false")),
    }
}

fn objects<'a>(
    of: Option<&'a Object>,
    key: &str,
    path: &'static str,
) -> Result<&'a [Value], Shape> {
    match field(of, key) {
        None => Ok(&[]),
        Some(Value::Array(list)) => match list.iter().find(|item| !item.is_object()) {
            None => Ok(list),
            Some(other) => Err(shape(path, other, "a list of maps")),
        },
        Some(other) => Err(shape(path, other, "a list")),
    }
}
