//! One document as JSON: an object, or a list of them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::index::ObjectKind;
use crate::model::{Finding, ObjectRef, Reason, Severity, quoted};

use super::{
    Lost, Manifest, Problem, object,
    repeated::{self, Repeated},
};

/// How deep lists may lie in lists.
const MAX_LISTS: usize = 8;

/// What must be known of an object before it can be read as its kind.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

/// Reads one document into the manifest. `origin` names it.
pub(super) fn read(name: &str, origin: &str, json: &str, manifest: &mut Manifest) {
    Reader { name, manifest }.node(origin, json, None, 0);
}

/// What an item of a list is if it does not say: the items of a `ServiceList` are Services.
type Inherited<'a> = Option<(&'a str, &'a str)>;

struct Reader<'a> {
    name: &'a str,
    manifest: &'a mut Manifest,
}

impl Reader<'_> {
    fn node(&mut self, origin: &str, json: &str, inherited: Inherited<'_>, lists: usize) {
        if json.trim() == "null" {
            return;
        }
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(json) else {
            if let Some(twice) = repeated::repeated(json) {
                self.repeated(origin, &twice);
            } else {
                let found = object::shown(json);
                self.broken(origin, "", format!("it holds {found} where an object is expected"));
            }
            return;
        };
        let own = (text(envelope.api_version), text(envelope.kind));
        let (api_version, kind) = match (&own, inherited) {
            ((None, None), Some((api_version, kind))) => (api_version.to_owned(), kind.to_owned()),
            ((Some(api_version), Some(kind)), _) => (api_version.clone(), kind.clone()),
            ((api_version, _), _) => {
                let field = if api_version.is_none() { "apiVersion" } else { "kind" };
                self.broken(origin, field, format!("it has no {field}, or one that is no text"));
                return;
            }
        };
        if let (Some(item), Some(items)) = (kind.strip_suffix("List"), envelope.items) {
            self.list(origin, items, (&api_version, item), lists);
            return;
        }
        match classify(&api_version, &kind) {
            Class::Read(kind) => self.object(origin, kind, json, envelope.metadata),
            Class::Other => {
                tracing::debug!(origin, api_version, kind, "no object of the mesh, ignored");
            }
            Class::Version { kind, expected, lost } => {
                let (_, namespace, name) = object::identity(kind, envelope.metadata);
                let severity = if lost { Severity::Problem } else { Severity::Warning };
                let finding = Finding {
                    object: ObjectRef::new(kind.as_str(), namespace, name),
                    severity,
                    reason: Reason::UnreadableObject,
                    origin: Some(origin.into()),
                    field: "apiVersion".to_owned(),
                    message: format!(
                        "{} is read in {expected} alone, and this says {}",
                        kind.as_str(),
                        quoted(&api_version)
                    ),
                    way_out: format!("write it as {expected}"),
                };
                let lost = if lost { Lost::Kind(kind) } else { Lost::Nothing };
                self.manifest.problem(Problem { finding, lost });
            }
        }
    }

    fn list(&mut self, origin: &str, items: &RawValue, of: (&str, &str), lists: usize) {
        if lists == MAX_LISTS {
            self.broken(origin, "items", format!("lists lie more than {MAX_LISTS} deep in lists"));
            return;
        }
        let Ok(items) = serde_json::from_str::<Option<Vec<&RawValue>>>(items.get()) else {
            let found = object::shown(items.get());
            self.broken(origin, "items", format!("it holds {found} where a list is expected"));
            return;
        };
        // The items of the general `List` say themselves what they are.
        let inherited = Some(of).filter(|(_, kind)| !kind.is_empty());
        for (index, item) in items.unwrap_or_default().into_iter().enumerate() {
            self.node(&format!("{origin}.items[{index}]"), item.get(), inherited, lists + 1);
        }
    }

    fn object(&mut self, origin: &str, kind: ObjectKind, json: &str, meta: Option<&RawValue>) {
        match object::read(kind, json, meta, origin) {
            Ok(parsed) => self.manifest.objects.push(parsed),
            Err(problem) => self.manifest.problem(*problem),
        }
    }

    fn repeated(&mut self, origin: &str, twice: &Repeated) {
        let message = repeated::message(&twice.key);
        let mut problem = Problem::file(self.name, origin, message, repeated::WAY_OUT);
        problem.finding.field.clone_from(&twice.path);
        self.manifest.problem(problem);
    }

    fn broken(&mut self, origin: &str, field: &str, message: String) {
        let mut problem = Problem::file(
            self.name,
            origin,
            message,
            "write a Kubernetes object with apiVersion, kind and metadata, or move it out of the folder",
        );
        field.clone_into(&mut problem.finding.field);
        self.manifest.problem(problem);
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .filter(|text: &String| !text.is_empty())
}

/// What an apiVersion and a kind make together.
enum Class {
    /// A kind of the mesh.
    Read(ObjectKind),
    /// Something else, of which there is much in a cluster.
    Other,
    /// A kind of the mesh in a version that is not read; `lost` where there is no such version.
    Version { kind: ObjectKind, expected: &'static str, lost: bool },
}

fn classify(api_version: &str, kind: &str) -> Class {
    let (kind, expected) = match kind {
        "Namespace" => (ObjectKind::Namespace, "v1"),
        "Node" => (ObjectKind::Node, "v1"),
        "ServiceAccount" => (ObjectKind::ServiceAccount, "v1"),
        "Service" => (ObjectKind::Service, "v1"),
        "Pod" => (ObjectKind::Pod, "v1"),
        "EndpointSlice" => (ObjectKind::EndpointSlice, "discovery.k8s.io/v1"),
        _ => return Class::Other,
    };
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (api_version, group) {
        _ if api_version == expected => Class::Read(kind),
        ("discovery.k8s.io/v1beta1", _) => Class::Version { kind, expected, lost: false },
        // Another group may well have a kind of this name (`serving.knative.dev/v1` has).
        (_, "" | "discovery.k8s.io") => Class::Version { kind, expected, lost: true },
        _ => Class::Other,
    }
}
