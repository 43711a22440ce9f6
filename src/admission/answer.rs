//! The answer to a review: allowed or not, with the patch, warnings and audit annotations.
//!
//! The types are our own: kube's write the patch as a list of numbers, which the API server reads
//! and nobody else does.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Serialize;

use super::decide::{Decision, GateStep, Left, Managed, Skip};
use super::pod::Pod;
use super::review::{API_VERSION, Entry, KIND, Review};
use super::settings::Settings;
use super::{Shape, decide, keys, patch};

/// An AdmissionReview with a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    api_version: &'static str,
    kind: &'static str,
    /// The response.
    pub response: Response,
}

/// The response of a review.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The request's own.
    pub uid: String,
    /// Whether the pod is created.
    pub allowed: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The operations as JSON, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<ByteString>,
    /// `JSONPatch`, where there is a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<&'static str>,
    /// What the audit log of the API server says of it. Equal for the reviews of one pod, which
    /// may be several: a value that changes is logged there as a mistake.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<&'static str, String>,
    /// What the user is told, at most 256 characters each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Why a request is refused, as Kubernetes' own errors say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The word for it.
    pub reason: &'static str,
    /// The words for it.
    pub message: String,
}

impl Answer {
    /// Answers a review.
    ///
    /// # Errors
    /// Where the pod has a field of a type that no pod has, or the patch cannot be written.
    pub fn to(
        review: &Review,
        entry: Entry,
        settings: &Settings,
    ) -> Result<(Decision, Self), AnswerError> {
        let decision = decide(review, entry, settings)?;
        let mut answer = Self::allowed(review.uid.clone());
        let response = &mut answer.response;
        match &decision {
            Decision::Untouched(why) => {
                response.audit_annotations.insert("left", why.as_str().to_owned());
            }
            Decision::Denied(denial) => {
                let faults: Vec<_> = denial.faults.iter().map(|f| f.kind.as_str()).collect();
                response.audit_annotations.insert("denied", faults.join(","));
                response.allowed = false;
                let message = denial.to_string();
                response.status = Some(Status { code: 403, reason: "Forbidden", message });
            }
            Decision::Managed(managed) => {
                response.warnings = warnings(managed);
                let object = review.object.as_ref();
                if let Some(pod) = object.map(Pod::read).transpose()? {
                    response.audit_annotations = audit(managed, &pod, entry);
                }
                let patch = object.map(|pod| patch(&decision, pod));
                if let Some(patch) = patch.filter(|patch| !patch.0.is_empty()) {
                    response.patch = Some(ByteString(serde_json::to_vec(&patch)?));
                    response.patch_type = Some("JSONPatch");
                }
            }
        }
        Ok((decision, answer))
    }

    /// Allowed, and nothing more.
    fn allowed(uid: String) -> Self {
        let response = Response {
            uid,
            allowed: true,
            status: None,
            patch: None,
            patch_type: None,
            audit_annotations: BTreeMap::new(),
            warnings: Vec::new(),
        };
        Self { api_version: API_VERSION, kind: KIND, response }
    }

    /// A failure, which is no decision: it travels with an HTTP status of its own, on which the API
    /// server applies the failure policy.
    pub fn failure(uid: String, code: u16, reason: &'static str, message: String) -> Self {
        let mut answer = Self::allowed(uid);
        answer.response.allowed = false;
        answer.response.status = Some(Status { code, reason, message });
        answer
    }
}

/// Why a review that could be read has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The pod is none.
    #[error("request.object.{0}")]
    Pod(#[from] Shape),
    /// The patch cannot be written, which JSON does not let happen.
    #[error("the patch cannot be written: {0}")]
    Patch(#[from] serde_json::Error),
}

/// What the pod gets less than its neighbours, said to whoever creates it. What its own annotation
/// asked for is no news to them.
pub fn warnings(managed: &Managed) -> Vec<String> {
    let gate = match &managed.gate {
        GateStep::Skipped(Skip::HostNetwork) => {
            Some("a pod with hostNetwork gets no identity gate: it may start before its identity is there".to_owned())
        }
        GateStep::Skipped(Skip::Windows) => {
            Some("a Windows pod gets no identity gate: it may start before its identity is there".to_owned())
        }
        GateStep::Skipped(Skip::ForeignContainer) => Some(format!(
            "no identity gate: a container {} of other content is there already; rename or remove it",
            keys::GATE_CONTAINER
        )),
        GateStep::Skipped(Skip::ForeignVolume) => Some(format!(
            "no identity gate: a volume {} of other content is there already; rename or remove it",
            keys::GATE_VOLUME
        )),
        GateStep::Off | GateStep::Skipped(Skip::Annotation) | GateStep::Present { .. } => None,
    };
    let resolver = match managed.resolver.left {
        Some(Left::PolicyDefault) => Some(
            "dnsPolicy Default: the pod asks its node's resolver and gets no ndots; mesh names may \
             not resolve; use ClusterFirst",
        ),
        Some(Left::PolicyNone) => Some(
            "dnsPolicy None: the pod's own dnsConfig is left as it is; mesh names resolve only if \
             its nameserver knows them",
        ),
        Some(Left::HostNetwork) => {
            Some("a pod with hostNetwork gets no resolver options: mesh names may not resolve")
        }
        Some(Left::Off) | None => None,
    };
    let all = gate.into_iter().chain(resolver.map(str::to_owned));
    all.map(|warning| format!("aether: {warning}")).collect()
}

/// What the audit log keeps: how the pod will be, not what was done to it, so that each review of
/// one pod says the same.
fn audit(managed: &Managed, pod: &Pod<'_>, entry: Entry) -> BTreeMap<&'static str, String> {
    let gate = match &managed.gate {
        GateStep::Off => "off".to_owned(),
        GateStep::Skipped(skip) => format!("none: {}", skip.as_str()),
        GateStep::Present { .. } => "present".to_owned(),
    };
    let resolver = match managed.resolver.left {
        None => "set".to_owned(),
        Some(left) => format!("left: {}", left.as_str()),
    };
    let socket = pod.annotation(keys::UDS_SOCKET).map(|_| ("unix-socket", "accepted".to_owned()));
    let always = [
        ("managed-by", entry.as_str().to_owned()),
        ("identity-gate", gate),
        ("resolver", resolver),
    ];
    always.into_iter().chain(socket).collect()
}
