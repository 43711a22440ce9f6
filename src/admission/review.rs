//! An AdmissionReview as the API server sends it, read in steps, so that whatever is wrong with it
//! later, its `uid` is known.
//!
//! The pod stays the JSON that it came as, without what no decision looks at. A typed pod would
//! forget the fields that are newer than its type, and could not tell an absent map from an empty or
//! a null one, which a patch must.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::lean;
use super::pod::Shape;
use crate::model::quoted;

/// The one version of AdmissionReview that is spoken.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of its objects.
pub const KIND: &str = "AdmissionReview";

/// Which entry of the webhook's registration brought a review. Its path says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    /// `pods.aether.io`: the pod's own label, in a namespace without it.
    Pod,
    /// `namespaces.aether.io`: the namespace's label.
    Namespace,
}

impl Entry {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Pod, Self::Namespace];

    /// The path at which the API server calls.
    pub fn path(self) -> &'static str {
        match self {
            Self::Pod => "/mutate",
            Self::Namespace => "/mutate/namespace",
        }
    }

    /// Its name in the webhook configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "pods.aether.io",
            Self::Namespace => "namespaces.aether.io",
        }
    }

    /// The word for it in metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Namespace => "namespace",
        }
    }
}

/// What of a review a decision needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// What the answer must echo.
    pub uid: String,
    /// Group, version and kind of the object, as in `/v1 Pod`.
    pub kind: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace of the request, which is the one that counts: pods from controllers often
    /// name none themselves.
    pub namespace: String,
    /// Nothing of this request is kept. It changes nothing for us, since a review has no side
    /// effect.
    pub dry_run: bool,
    /// The object, as it came but for what no decision looks at; `None` for a DELETE.
    pub object: Option<Value>,
}

/// Why a review cannot be answered. All of these are HTTP 400, on which the API server applies the
/// failure policy: to allow or to deny would be to guess.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// There is no body.
    #[error("the body is empty: send an AdmissionReview of {API_VERSION} as JSON")]
    Empty,
    /// It is no JSON, or no object.
    #[error("the body is no AdmissionReview: {0}")]
    Json(String),
    /// Another version or kind than ours.
    #[error(
        "the body is {kind} of {version}, and only {KIND} of {API_VERSION} is spoken: register the \
         webhook with admissionReviewVersions: [v1]"
    )]
    Version {
        /// The kind that it says.
        kind: String,
        /// The version that it says.
        version: String,
    },
    /// There is no request in it.
    #[error("the AdmissionReview holds no request")]
    NoRequest,
    /// There is no uid to echo.
    #[error("the request has no uid, so that no answer could be told from another")]
    NoUid,
    /// A field of the request has the wrong type or is missing.
    #[error("request.{field}: {problem}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The pod has a field of a type that no pod has.
    #[error("request.object.{0}")]
    Pod(Shape),
}

/// A review that cannot be read, with its uid where that could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Unreadable {
    /// What the answer echoes.
    pub uid: Option<String>,
    /// What is wrong.
    pub error: ReviewError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, rename = "apiVersion")]
    api_version: Value,
    #[serde(default)]
    kind: Value,
    #[serde(default, borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(default)]
    uid: Value,
    #[serde(default)]
    kind: Value,
    #[serde(default)]
    operation: Value,
    #[serde(default)]
    sub_resource: Value,
    #[serde(default)]
    namespace: Value,
    #[serde(default)]
    dry_run: Value,
    #[serde(default, borrow)]
    object: Option<&'a RawValue>,
}

impl Review {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// Where it is no AdmissionReview that can be answered; with the uid as soon as it is known.
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let without = |error| Unreadable { uid: None, error };
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(without(ReviewError::Empty));
        }
        // A list of its fields would be read as an object, too.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(without(ReviewError::Json("it is no JSON object".to_owned())));
        }
        let json = |error: serde_json::Error| ReviewError::Json(error.to_string());
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(json).map_err(without)?;
        let request = envelope.request;
        let uid = request.as_ref().and_then(|request| request.uid.as_str());
        let uid = uid.filter(|uid| !uid.is_empty()).map(str::to_owned);
        let error = |error| Unreadable { uid: uid.clone(), error };

        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            let (kind, version) = (shown(&envelope.kind), shown(&envelope.api_version));
            return Err(error(ReviewError::Version { kind, version }));
        }
        let Some(request) = request else { return Err(error(ReviewError::NoRequest)) };
        let Some(uid) = uid.clone() else { return Err(error(ReviewError::NoUid)) };
        Self::of(uid, &request).map_err(error)
    }

    fn of(uid: String, request: &Request<'_>) -> Result<Self, ReviewError> {
        let part = |field| text("kind", request.kind.get(field).unwrap_or(&Value::Null));
        let kind = format!("{}/{} {}", part("group")?, part("version")?, part("kind")?);
        let object = request.object.map(|raw| lean::pod(raw.get())).transpose();
        let object = object
            .map_err(|error| ReviewError::Field { field: "object", problem: error.to_string() })?;
        Ok(Self {
            uid,
            kind,
            operation: text("operation", &request.operation)?,
            subresource: text("subResource", &request.sub_resource)?,
            namespace: text("namespace", &request.namespace)?,
            dry_run: request.dry_run == Value::Bool(true),
            object: object.filter(|object| !object.is_null()),
        })
    }
}

/// A text; absent and null are the empty one, as Go reads them.
fn text(field: &'static str, value: &Value) -> Result<String, ReviewError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => Err(ReviewError::Field {
            field,
            problem: format!("it is {}, and a text is expected", shown(other)),
        }),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}
