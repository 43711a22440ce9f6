//! Pods and the workloads that hold a pod's template, for those who put them into the mesh before
//! the API server sees them.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::answer::warnings;
use super::decide::{Decision, Denial, Untouched};
use super::pod::{Shape, name_of};
use super::{Entry, Settings, decide_pod, patch};
use crate::index::MANAGED;

/// What is known of the namespace of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its label `aether.io/managed` is `true`.
    pub managed: bool,
}

/// What became of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is no pod and holds no template of one.
    NoWorkload,
    /// The webhook would leave its pods as they are.
    Untouched(Untouched),
    /// The webhook would deny its pods.
    Denied(Denial),
    /// Its pods are in the mesh.
    Managed {
        /// The operations on the object; none where it has everything.
        patch: Patch,
        /// What its pods get less than others.
        warnings: Vec<String>,
    },
}

/// What an object is. The items of a typed list, as of a PodList, do not say it themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl<'a> Kind<'a> {
    /// What an object says that it is, or else what it is taken for.
    pub fn of(object: &'a Value, or: Self) -> Self {
        let text = |key| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        match (text("apiVersion"), text("kind")) {
            (Some(api_version), Some(kind)) => Self { api_version, kind },
            _ => or,
        }
    }

    /// The items of a list, and what they are where they do not say it.
    pub fn items(self, object: &'a Value) -> Option<(Self, &'a [Value])> {
        let kind = self.kind.strip_suffix("List")?;
        let items = object.get("items")?.as_array()?;
        Some((Self { api_version: self.api_version, kind }, items))
    }
}

/// Where an object of this kind holds a pod: itself, a template, or none.
fn template(api_version: &str, kind: &str) -> Option<&'static [&'static str]> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, kind) {
        ("", "Pod") => Some(&[]),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job") => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        ("", "PodTemplate") => Some(&["template"]),
        _ => None,
    }
}

/// How messages call an object: `Deployment shop/web`.
pub fn called(object: &Value, kind: Kind<'_>, namespace: &str) -> String {
    let text = |of: Option<&Value>| of.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get("metadata");
    let mut name = metadata.map(name_of).unwrap_or_default().to_owned();
    if name.is_empty() {
        let start = text(metadata.and_then(|metadata| metadata.get("generateName")));
        name = if start.is_empty() { "(without a name)".to_owned() } else { format!("{start}*") };
    }
    format!("{} {namespace}/{name}", kind.kind)
}

/// Does to an object what the webhook would do to its pods.
///
/// # Errors
/// Where its pod has a field of a type that no pod has.
pub fn inject(
    object: &Value,
    kind: Kind<'_>,
    namespace: &Namespace,
    settings: &Settings,
) -> Result<Outcome, Shape> {
    let Some(path) = template(kind.api_version, kind.kind) else { return Ok(Outcome::NoWorkload) };
    // One without a template is for the API server to refuse.
    let found = path.iter().try_fold(object, |value, key| value.get(key));
    let Some(pod) = found.filter(|pod| !pod.is_null()) else { return Ok(Outcome::NoWorkload) };
    // The registration's selectors, which are the API server's part, in a line.
    let entry = if namespace.managed { Entry::Namespace } else { Entry::Pod };
    Ok(match decide_pod(pod, &namespace.name, entry, settings)? {
        Decision::Untouched(why) => Outcome::Untouched(why),
        Decision::Denied(mut denial) => {
            denial.object = called(object, kind, &namespace.name);
            Outcome::Denied(denial)
        }
        decision @ Decision::Managed(_) => {
            let warnings = match &decision {
                Decision::Managed(managed) => warnings(managed),
                _ => Vec::new(),
            };
            Outcome::Managed { patch: below(path, patch(&decision, pod)), warnings }
        }
    })
}

/// The name of a namespace, and whether it is managed; `None` for any other object.
pub fn managed_namespace<'a>(object: &'a Value, kind: Kind<'_>) -> Option<(&'a str, bool)> {
    let is_one = kind == Kind { api_version: "v1", kind: "Namespace" };
    let metadata = object.get("metadata").filter(|_| is_one)?;
    let label = metadata.get("labels").and_then(|labels| labels.get(MANAGED));
    Some((name_of(metadata), label.and_then(Value::as_str) == Some("true")))
}

/// The operations with their paths inside a larger object.
pub fn below(path: &[&str], patch: Patch) -> Patch {
    let inside = |pointer: &mut json_patch::jsonptr::PointerBuf| {
        for key in path.iter().rev() {
            pointer.push_front(*key);
        }
    };
    let mut operations = patch.0;
    for operation in &mut operations {
        match operation {
            PatchOperation::Add(add) => inside(&mut add.path),
            PatchOperation::Test(test) => inside(&mut test.path),
            PatchOperation::Move(moved) => {
                inside(&mut moved.from);
                inside(&mut moved.path);
            }
            // There are no others.
            _ => {}
        }
    }
    Patch(operations)
}
