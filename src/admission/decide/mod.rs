//! What becomes of a pod, and why. Pure: the review and the settings in, the decision out.

pub mod carrier;
pub mod gate;
pub mod resolver;

pub use carrier::{Denial, Fault, FaultKind};
pub use gate::{GateStep, Place, Skip};
pub use resolver::{DnsOption, Left, Resolver};

use serde_json::Value;

use super::keys;
use super::pod::{Pod, Shape};
use super::review::{Entry, Review};
use super::settings::Settings;
use crate::index::MANAGED;

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It is allowed as it is.
    Untouched(Untouched),
    /// It is denied, as the Unix socket that it asks for could never work.
    Denied(Denial),
    /// It is in the mesh.
    Managed(Managed),
}

/// Why a pod is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Untouched {
    /// The review is of something else, so the registration is wrong.
    NotAPod,
    /// The review is of a subresource of a pod, likewise.
    Subresource,
    /// It is no CREATE, likewise. What a pod holds is fixed once it is made.
    NotACreation,
    /// Its namespace is never touched.
    NeverTouched,
    /// It is the picture of a static pod, which no admission changes.
    Mirror,
    /// It came by the entry of the pods' own label, and has none.
    NotLabelled,
    /// Its own label is another than `true`.
    OptedOut,
}

impl Untouched {
    /// The word for it in metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAPod => "not_a_pod",
            Self::Subresource => "subresource",
            Self::NotACreation => "not_a_creation",
            Self::NeverTouched => "namespace_never_touched",
            Self::Mirror => "mirror_pod",
            Self::NotLabelled => "not_labelled",
            Self::OptedOut => "opted_out",
        }
    }
}

/// What a pod of the mesh is given, beside what it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Managed {
    /// The label `aether.io/managed: "true"`.
    pub add_label: bool,
    /// The options of the resolver.
    pub resolver: Resolver,
    /// The identity gate.
    pub gate: GateStep,
}

impl Managed {
    /// Whether the pod has all of it already.
    pub fn is_done(&self) -> bool {
        !self.add_label && self.resolver.add.is_empty() && self.gate.is_done()
    }
}

/// Decides on a review. It needs no look-up: the entry says which label brought it.
///
/// # Errors
/// Where the object has a field of a type that no pod has.
pub fn decide(review: &Review, entry: Entry, settings: &Settings) -> Result<Decision, Shape> {
    let wrong = match (&*review.kind, &*review.subresource, &*review.operation) {
        ("/v1 Pod", "", "CREATE") => None,
        ("/v1 Pod", "", _) => Some(Untouched::NotACreation),
        ("/v1 Pod", _, _) => Some(Untouched::Subresource),
        _ => Some(Untouched::NotAPod),
    };
    if let Some(wrong) = wrong {
        return Ok(Decision::Untouched(wrong));
    }
    decide_pod(review.object.as_ref().unwrap_or(&Value::Null), &review.namespace, entry, settings)
}

/// Decides on a pod that is to be created in this namespace. What the pod itself says of its
/// namespace does not count: most pods say nothing.
///
/// # Errors
/// Where it has a field of a type that no pod has.
pub fn decide_pod(
    pod: &Value,
    namespace: &str,
    entry: Entry,
    settings: &Settings,
) -> Result<Decision, Shape> {
    let pod = Pod::read(pod)?;
    if let Some(untouched) = untouched(&pod, namespace, entry, settings) {
        return Ok(Decision::Untouched(untouched));
    }
    if let Some(denial) = carrier::check(&pod, namespace) {
        return Ok(Decision::Denied(denial));
    }
    Ok(Decision::Managed(Managed {
        add_label: pod.label(MANAGED).is_none(),
        resolver: resolver::decide(&pod, settings),
        gate: gate::decide(&pod, settings.gate.as_ref()),
    }))
}

/// Whether the pod is none of ours.
fn untouched(pod: &Pod<'_>, ns: &str, entry: Entry, settings: &Settings) -> Option<Untouched> {
    if settings.index.never_touches(ns) {
        return Some(Untouched::NeverTouched);
    }
    // The annotation counts, not its value, as for the API server itself.
    if pod.annotation(keys::MIRROR).is_some() {
        return Some(Untouched::Mirror);
    }
    match (entry, pod.label(MANAGED)) {
        (_, Some("true")) | (Entry::Namespace, None) => None,
        (Entry::Pod, None) => Some(Untouched::NotLabelled),
        (_, Some(_)) => Some(Untouched::OptedOut),
    }
}
