//! The Service that a destination means, and how it stands with the mesh.

use std::net::IpAddr;
use std::sync::Arc;

use super::Host;
use super::evidence::{Evidence, object_of};
use super::explanation::{Step, Topic};
use super::findings::since;
use super::name::Resolved;
use super::words::list;
use crate::index::{MESH_SERVICE, OtherService, ServiceFacts};
use crate::model::{
    HttpVersion, MeshPort, MeshService, ObjectRef, PodKey, Protocol, Reason, Severity, Upstreams,
};

/// How the Service that is meant stands with the mesh.
#[derive(Debug, Clone)]
pub(super) enum Standing {
    /// It is a mesh service.
    Captured(Arc<MeshService>),
    /// It is none, and why, as a clause.
    Not(ObjectRef, String),
    /// No Service is meant, or none that is known.
    Unknown,
}

/// The Service that a host means.
pub(super) fn meant(
    host: &Host,
    resolved: &Resolved,
    pod: &PodKey,
    evidence: &Evidence,
) -> Standing {
    match host {
        Host::Ip(ip) => by_address(*ip, evidence),
        Host::Name(name) => by_name(name, resolved, pod, evidence),
    }
}

fn by_address(ip: IpAddr, evidence: &Evidence) -> Standing {
    let services = || evidence.projection.services.values();
    let owner = services().find(|one| one.owned_ips.contains(&ip));
    if let Some(service) = owner.or_else(|| services().find(|one| one.cluster_ips.contains(&ip))) {
        return captured(service, evidence);
    }
    let facts = evidence.about.services.values().find(|one| one.cluster_ips.contains(&ip));
    let other = || evidence.about.others.values().find(|one| one.cluster_ips.contains(&ip));
    match (facts, other()) {
        (Some(facts), _) => left_out(&facts.object, evidence),
        (None, Some(other)) => not_captured(other, evidence),
        (None, None) => Standing::Unknown,
    }
}

fn by_name(name: &str, resolved: &Resolved, pod: &PodKey, evidence: &Evidence) -> Standing {
    if let Some(key) = &resolved.key {
        if let Some(service) = evidence.service(key) {
            return captured(service, evidence);
        }
        let claims = |facts: &&Arc<ServiceFacts>| {
            facts.object.namespace == key.namespace && facts.mesh_name == key.name
        };
        if let Some(facts) = evidence.about.services.values().find(claims) {
            return left_out(&facts.object, evidence);
        }
    }
    let key = resolved.key.as_ref().map(|key| (key.namespace.clone(), key.name.clone()));
    let named = resolved.service.clone().or(key).unwrap_or_else(|| spelled(name, pod));
    if let Some(service) = evidence.mesh_service_of(&named.0, &named.1) {
        return captured(service, evidence);
    }
    if let Some(facts) = evidence.about.services.get(&named) {
        return left_out(&facts.object, evidence);
    }
    if let Some(other) = evidence.about.others.get(&named) {
        return not_captured(other, evidence);
    }
    let object = ObjectRef::new("Service", named.0, named.1);
    if evidence.on(&object).next().is_some() {
        left_out(&object, evidence)
    } else {
        Standing::Unknown
    }
}

/// The namespace and name that a spelling has, where nothing answers it.
fn spelled(name: &str, pod: &PodKey) -> (Arc<str>, Arc<str>) {
    let mut labels = name.split('.');
    let service = labels.next().unwrap_or_default().into();
    (labels.next().map_or_else(|| pod.namespace.clone(), Into::into), service)
}

/// A mesh service, unless the translation had to leave it out.
fn captured(service: &Arc<MeshService>, evidence: &Evidence) -> Standing {
    let object = object_of(service);
    let nothing_served = evidence
        .on(&object)
        .any(|(finding, _)| finding.reason == Reason::NotServable && !finding.field.is_empty());
    if nothing_served { left_out(&object, evidence) } else { Standing::Captured(service.clone()) }
}

/// A Service that is labelled and no mesh service: what was found says why.
fn left_out(object: &ObjectRef, evidence: &Evidence) -> Standing {
    let mut found: Vec<_> = evidence.on(object).collect();
    found.sort_by_key(|(finding, _)| finding.severity);
    let why = match found.first() {
        Some((finding, time)) => {
            let how = match finding.severity {
                Severity::Problem => "quarantined",
                Severity::Warning => "not captured",
            };
            format!("is {how}{}: {}", since(*time), finding.message)
        }
        None => "is not captured".to_owned(),
    };
    Standing::Not(object.clone(), why)
}

fn not_captured(other: &OtherService, evidence: &Evidence) -> Standing {
    if other.labelled {
        return left_out(&other.object, evidence);
    }
    let why = format!("is not captured: it lacks the label {MESH_SERVICE}=true");
    Standing::Not(other.object.clone(), why)
}

/// The step that says how it stands.
pub(super) fn step(standing: &Standing, pod: &PodKey, evidence: &Evidence) -> Option<Step> {
    let label = format!("metadata.labels[{MESH_SERVICE}]");
    match standing {
        Standing::Captured(service) => {
            let object = object_of(service);
            let ports = list(service.ports.iter().map(port));
            let says = format!("{object} is the mesh service {}: {ports}", service.key);
            let rule = "the label puts a Service into the mesh";
            let mut step =
                Step::new(Topic::Service, says).because(&object, label, "\"true\"", rule);
            if let Some(listed) = scoped_out(service, pod, evidence) {
                let pod = ObjectRef::new("Pod", pod.namespace.clone(), pod.name.clone());
                let rule = format!("{} is none of the services that the pod calls", service.key);
                step = step.because(pod, UPSTREAMS_FIELD, listed, rule);
            }
            Some(step)
        }
        Standing::Not(object, why) => {
            let step = Step::new(Topic::Service, format!("{object} {why}"));
            let labelled = evidence.about.others.values().find(|other| other.object == *object);
            Some(match labelled {
                Some(other) if !other.labelled => step.because(
                    object,
                    label,
                    "(absent or another)",
                    "a Service is in the mesh by this label alone",
                ),
                _ => evidence.on(object).fold(step, |step, (finding, _)| {
                    let field = finding.field.clone();
                    step.because(object, field, "", format!("what to do: {}", finding.way_out))
                }),
            })
        }
        Standing::Unknown => None,
    }
}

/// The field that scopes a pod.
pub(super) const UPSTREAMS_FIELD: &str = "metadata.annotations[config.aether.io/upstreams]";

/// What the pod lists, where the service is not among it.
pub(super) fn scoped_out(
    service: &MeshService,
    pod: &PodKey,
    evidence: &Evidence,
) -> Option<String> {
    match &evidence.projection.pods.get(pod)?.upstreams {
        Upstreams::Listed(listed) if !listed.contains(&service.key) => Some(list(listed.iter())),
        _ => None,
    }
}

fn port(port: &MeshPort) -> String {
    format!("{} {}", port.number, protocol(port.protocol))
}

/// A protocol in words.
pub(super) fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http(HttpVersion::Http1) => "HTTP/1.1",
        Protocol::Http(HttpVersion::Http2) => "HTTP/2",
        Protocol::Http(HttpVersion::AsClient) => "HTTP as the client speaks it",
        Protocol::Tcp => "TCP",
    }
}
