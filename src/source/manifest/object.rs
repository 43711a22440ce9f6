//! One object: typed, named, trimmed.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use crate::index::{Id, Object, ObjectKind};
use crate::model::{Finding, ObjectRef, Reason, Severity, quoted};

use super::{Lost, Parsed, Problem, is_dns_subdomain, names, repeated, trim};

/// The namespace of an object that names none, as everywhere in Kubernetes.
const DEFAULT_NAMESPACE: &str = "default";

/// Why an object cannot be read: a field and what is wrong with it.
struct Unreadable {
    field: String,
    message: String,
    way_out: String,
}

/// Reads an object of a known kind. `meta` is its metadata as it stands in `json`, by which the
/// object is named where it cannot be read.
pub(super) fn read(
    kind: ObjectKind,
    json: &str,
    meta: Option<&RawValue>,
    origin: &str,
) -> Result<Parsed, Box<Problem>> {
    let failed = |unreadable: Unreadable| {
        let (id, namespace, name) = identity(kind, meta);
        Box::new(Problem {
            finding: Finding {
                object: ObjectRef::new(kind.as_str(), namespace, name),
                severity: Severity::Problem,
                reason: Reason::UnreadableObject,
                origin: Some(origin.into()),
                field: unreadable.field,
                message: unreadable.message,
                way_out: unreadable.way_out,
            },
            lost: id.map_or(Lost::Kind(kind), Lost::Object),
        })
    };
    if let Some(twice) = repeated::repeated(json) {
        return Err(failed(Unreadable {
            message: repeated::message(&twice.key),
            field: twice.path,
            way_out: repeated::WAY_OUT.to_owned(),
        }));
    }
    let mut object = typed(kind, json).map_err(failed)?;
    let id = name(kind, metadata(&mut object)).map_err(failed)?;
    trim(&mut object);
    let form = to_json(&object).map_err(|error| {
        failed(Unreadable {
            field: String::new(),
            message: format!("it cannot be written as JSON again: {error}"),
            way_out: "simplify it".to_owned(),
        })
    })?;
    Ok(Parsed { id, object, form: form.into(), origin: origin.into() })
}

/// Reads an object of a known kind that came from an API server, in JSON. `meta` is its metadata as
/// it stands there; such an object has no origin but itself.
///
/// # Errors
/// What is wrong with the object, by field.
pub fn read_one(
    kind: ObjectKind,
    json: &str,
    meta: Option<&RawValue>,
) -> Result<Parsed, Box<Problem>> {
    read(kind, json, meta, "").map_err(|mut problem| {
        problem.finding.origin = None;
        problem
    })
}

/// Which object it is, by its metadata alone. `None` where that has no name that Kubernetes allows.
pub fn id(kind: ObjectKind, meta: Option<&RawValue>) -> Option<Id> {
    identity(kind, meta).0
}

/// An object from the form that `read` gave it. `None` only for bytes that are no such form.
pub fn restore(kind: ObjectKind, form: &[u8]) -> Option<Object> {
    typed(kind, std::str::from_utf8(form).ok()?).ok()
}

/// Whose the metadata is, as far as it can be read: for findings, and to find the last good form.
pub(super) fn identity(
    kind: ObjectKind,
    meta: Option<&RawValue>,
) -> (Option<Id>, Arc<str>, Arc<str>) {
    let meta: Value = meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let text = |field: &str| meta.get(field).and_then(|value| value.as_str());
    let namespace: Arc<str> = match text("namespace").unwrap_or_default() {
        _ if !kind.namespaced() => "".into(),
        "" => DEFAULT_NAMESPACE.into(),
        given => given.into(),
    };
    // A name that is no text is none, but says to a reader which object it is.
    let said = meta.get("name").filter(|name| name.is_boolean() || name.is_number());
    let name: Arc<str> = match (text("name"), said) {
        (Some(name), _) => name.into(),
        (None, Some(name)) => name.to_string().into(),
        (None, None) => "".into(),
    };
    let known = (text("name").is_some() && is_dns_subdomain(&name)).then(|| Id {
        kind,
        namespace: namespace.clone(),
        name: name.clone(),
    });
    (known, namespace, name)
}

/// A value for a message, whatever it is: cut where it is long.
pub(super) fn shown(json: &str) -> String {
    match json.trim().chars().next() {
        Some('{') => "an object".to_owned(),
        Some('[') => "a list".to_owned(),
        Some('"') => {
            let text: String = serde_json::from_str(json).unwrap_or_default();
            format!("the text {}", quoted(&text))
        }
        _ => quoted(json.trim()),
    }
}

fn typed(kind: ObjectKind, json: &str) -> Result<Object, Unreadable> {
    Ok(match kind {
        ObjectKind::Namespace => Object::Namespace(parse(json)?),
        ObjectKind::Node => Object::Node(parse(json)?),
        ObjectKind::ServiceAccount => Object::ServiceAccount(parse(json)?),
        ObjectKind::Service => Object::Service(parse(json)?),
        ObjectKind::EndpointSlice => Object::EndpointSlice(parse(json)?),
        ObjectKind::Pod => Object::Pod(parse(json)?),
    })
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<Box<T>, Unreadable> {
    if let Ok(value) = serde_json::from_str(json) {
        return Ok(Box::new(value));
    }
    // This and following the path cost time, so they are done for what is broken alone.
    let cleaned = without_nulls(json);
    let json = cleaned.as_deref().unwrap_or(json);
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer)
        .map(Box::new)
        .map_err(|error| mistyped(json, &error))
}

/// Maps of texts to texts. To an API server a `null` in one is an empty text, as it is to Go.
const OF_TEXTS: [&str; 4] =
    ["/metadata/labels", "/metadata/annotations", "/spec/selector", "/spec/nodeSelector"];

/// The same without fields and entries that are `null`: to Kubernetes they are absent, but for the
/// values of labels and such, which are empty. `None` where there are none.
fn without_nulls(json: &str) -> Option<String> {
    fn prune(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(prune);
            }
            Value::Array(items) => items.iter_mut().for_each(prune),
            _ => {}
        }
    }
    let read = || serde_json::from_str::<Value>(json).ok();
    let mut value = json.contains("null").then(read).flatten()?;
    for map in OF_TEXTS {
        let texts = value.pointer_mut(map).and_then(Value::as_object_mut);
        let nulls = texts.into_iter().flat_map(|texts| texts.values_mut());
        for null in nulls.filter(|text| text.is_null()) {
            *null = Value::from("");
        }
    }
    prune(&mut value);
    Some(value.to_string())
}

/// A value of another type than Kubernetes has there.
fn mistyped(json: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> Unreadable {
    let field = error.path().to_string();
    let inner = error.inner();
    let text = inner.to_string();
    // The place in the object's own JSON says nothing to whoever wrote YAML.
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let found = value_at(json, error.path());
    let message = match &found {
        // Most errors name what they found; those of a type's own reader may not.
        Some(found) if !text.starts_with("invalid ") => {
            format!("{text} (found {})", shown(&found.to_string()))
        }
        _ => text.to_owned(),
    };
    let way_out = match found {
        Some(Value::Bool(found)) if text.ends_with("expected a string") => format!(
            "quote it, as in \"{found}\": without quotes yes, no, on, off, true and false are truth \
             values and no text"
        ),
        Some(Value::Number(found)) if text.ends_with("expected a string") => {
            format!("quote it, as in \"{found}\": without quotes it is a number and no text")
        }
        _ => "write a value of the type that Kubernetes expects there".to_owned(),
    };
    Unreadable { field: if field == "." { String::new() } else { field }, message, way_out }
}

fn value_at(json: &str, path: &Path) -> Option<Value> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    for segment in path {
        value = match segment {
            Segment::Seq { index } => value.get_mut(*index)?.take(),
            Segment::Map { key } => value.get_mut(key)?.take(),
            Segment::Enum { .. } | Segment::Unknown => return None,
        };
    }
    Some(value)
}

fn metadata(object: &mut Object) -> &mut ObjectMeta {
    match object {
        Object::Namespace(object) => &mut object.metadata,
        Object::Node(object) => &mut object.metadata,
        Object::ServiceAccount(object) => &mut object.metadata,
        Object::Service(object) => &mut object.metadata,
        Object::EndpointSlice(object) => &mut object.metadata,
        Object::Pod(object) => &mut object.metadata,
    }
}

/// Names the object as an API server would, and checks that one would take the name.
fn name(kind: ObjectKind, meta: &mut ObjectMeta) -> Result<Id, Unreadable> {
    let unreadable = |field: &str, message: String, way_out: &str| Unreadable {
        field: field.to_owned(),
        message,
        way_out: way_out.to_owned(),
    };
    let name = meta.name.clone().unwrap_or_default();
    if name.is_empty() {
        let message = match meta.generate_name.as_deref() {
            Some(prefix) if !prefix.is_empty() => format!(
                "it has no name, only generateName {}, from which an API server alone makes one",
                quoted(prefix)
            ),
            _ => "it has no name".to_owned(),
        };
        return Err(unreadable("metadata.name", message, "give it a metadata.name"));
    }
    if let Err(rule) = names::check(kind, &name) {
        let message = format!("{} is no name of a {}", quoted(&name), kind.as_str());
        return Err(unreadable("metadata.name", message, &format!("take {rule}")));
    }
    if !kind.namespaced() {
        meta.namespace = None;
        return Ok(Id { kind, namespace: "".into(), name: name.into() });
    }
    let namespace = meta.namespace.take().filter(|given| !given.is_empty());
    let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    if let Err(rule) = names::check(ObjectKind::Namespace, &namespace) {
        let message = format!("{} is no name of a Namespace", quoted(&namespace));
        return Err(unreadable("metadata.namespace", message, &format!("take {rule}")));
    }
    meta.namespace = Some(namespace.clone());
    Ok(Id { kind, namespace: namespace.into(), name: name.into() })
}

fn to_json(object: &Object) -> serde_json::Result<Vec<u8>> {
    match object {
        Object::Namespace(object) => serde_json::to_vec(object),
        Object::Node(object) => serde_json::to_vec(object),
        Object::ServiceAccount(object) => serde_json::to_vec(object),
        Object::Service(object) => serde_json::to_vec(object),
        Object::EndpointSlice(object) => serde_json::to_vec(object),
        Object::Pod(object) => serde_json::to_vec(object),
    }
}
