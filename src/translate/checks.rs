//! The last look at a service or pod before it is encoded: what Envoy would refuse is left out
//! alone, with a finding.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{
    Finding, MeshPod, MeshService, ObjectRef, PodKey, Reason, ServiceKey, Severity, is_dns_label,
    quoted,
};

/// Whether nothing of a service can be served, and why.
pub(super) fn service(service: &MeshService) -> Option<Finding> {
    let parts = [
        ("metadata.namespace", &service.key.namespace),
        ("metadata.name", &service.service),
        ("metadata.annotations[aether.io/service]", &service.key.name),
    ];
    for (field, value) in parts {
        if !is_dns_label(value) {
            return Some(finding(
                service,
                field,
                format!(
                    "{} is no DNS label, so no host, chain or cluster can bear it and nothing of \
                     the Service is served",
                    quoted(value)
                ),
                "use at most 63 of a-z, 0-9 and '-', with a letter or digit first and last",
            ));
        }
    }
    let numbers: BTreeSet<u16> = service.ports.iter().map(|port| port.number).collect();
    let field = "spec.ports";
    if numbers.len() != service.ports.len() || numbers.contains(&0) {
        let way_out = "give each TCP port a number of its own from 1 to 65535";
        let message = format!(
            "the ports {:?} repeat a number or hold a 0, so nothing of the Service is served",
            service.ports.iter().map(|port| port.number).collect::<Vec<_>>()
        );
        return Some(finding(service, field, message, way_out));
    }
    if !numbers.contains(&service.default_port) {
        let message = format!(
            "the default port {} is none of its TCP ports {numbers:?}, so nothing of the Service \
             is served",
            service.default_port
        );
        return Some(finding(service, field, message, "give the Service a TCP port"));
    }
    None
}

/// Whether a pod's proxy cannot be served, and why.
pub(super) fn pod(pod: &MeshPod) -> Option<Finding> {
    let named = |text: &str| text.len() <= 253 && text.split('.').all(is_dns_label);
    if is_dns_label(&pod.key.namespace) && named(&pod.key.name) {
        return None;
    }
    Some(Finding {
        object: ObjectRef::new("Pod", pod.key.namespace.clone(), pod.key.name.clone()),
        severity: Severity::Problem,
        reason: Reason::NotServable,
        origin: None,
        field: "metadata.name".to_owned(),
        message: format!(
            "{} is no name that a listener can bear, so the pod's proxy gets nothing",
            quoted(&pod.key.to_string())
        ),
        way_out: "use a name that the Kubernetes API accepts for a pod".to_owned(),
    })
}

/// What is wrong with a pod whose uid is that of another: they would share a network namespace.
pub(super) fn same_uid(pod: &MeshPod, first: &PodKey) -> Finding {
    Finding {
        object: ObjectRef::new("Pod", pod.key.namespace.clone(), pod.key.name.clone()),
        severity: Severity::Problem,
        reason: Reason::NotServable,
        origin: None,
        field: "metadata.uid".to_owned(),
        message: format!(
            "{} is the uid of pod {first} as well, so the node proxy serves only that one in the \
             network namespace that is pinned under it",
            quoted(pod.uid.as_deref().unwrap_or_default())
        ),
        way_out: "give each pod a uid of its own, as the Kubernetes API does".to_owned(),
    }
}

/// The findings on what a service loses to others.
pub(super) fn lost<'a>(
    service: &'a MeshService,
    claims: &'a BTreeMap<Arc<str>, ServiceKey>,
) -> impl Iterator<Item = Finding> + 'a {
    claims.iter().map(move |(claim, holder)| {
        finding(
            service,
            "",
            format!("{} already stands for {holder}, so it is not {}", quoted(claim), service.key),
            "rename one of the two Services, or give it an address of its own",
        )
    })
}

fn finding(service: &MeshService, field: &str, message: String, way_out: &str) -> Finding {
    Finding {
        object: ObjectRef::new("Service", service.key.namespace.clone(), service.service.clone()),
        severity: Severity::Problem,
        reason: Reason::NotServable,
        origin: None,
        field: field.to_owned(),
        message,
        way_out: way_out.to_owned(),
    }
}
