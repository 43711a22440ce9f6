//! What is wrong with Services that claim what others hold, in words.

use std::net::IpAddr;

use super::order::why;
use crate::index::Report;
use crate::index::facts::ServiceFacts;
use crate::model::{MeshNames, Reason, ServiceKey};

/// A labelled Service where its label does nothing.
pub(super) fn in_vain(facts: &ServiceFacts, report: &mut Report) {
    let namespace = &facts.object.namespace;
    report.warning(
        Reason::NotCaptured,
        "metadata.namespace",
        format!("the namespace {namespace} is never touched, so the Service is not captured"),
        "remove its label aether.io/mesh-service, or move it to another namespace",
    );
}

/// A Service whose key another holds.
pub(super) fn no_key(
    facts: &ServiceFacts,
    key: &ServiceKey,
    winner: &ServiceFacts,
    report: &mut Report,
) {
    report.problem(
        Reason::ConflictingKey,
        "metadata.annotations[aether.io/service]",
        format!(
            "it claims the mesh name {key}, which {} holds, {}; so nothing of it is served",
            winner.object,
            why(winner, facts)
        ),
        "give one of the two another name with the annotation aether.io/service",
    );
}

/// A Service whose short name another holds.
pub(super) fn no_short_name(
    facts: &ServiceFacts,
    key: &ServiceKey,
    owner: &ServiceFacts,
    names: &MeshNames,
    report: &mut Report,
) {
    report.problem(
        Reason::LostShortName,
        "metadata.annotations[aether.io/service]",
        format!(
            "the short name {} is that of {}, {}; this one is reached as {}",
            names.short(&key.name),
            owner.object,
            why(owner, facts),
            names.qualified(key)
        ),
        "use the qualified name, or give one of the two another name with the annotation aether.io/service",
    );
}

/// A Service with an address that another has.
pub(super) fn no_address(ip: IpAddr, owner: &ServiceFacts, report: &mut Report) {
    report.problem(
        Reason::ConflictingAddress,
        "spec.clusterIPs",
        format!(
            "{ip} is the ClusterIP of {} too, which comes first; so connections to it are not this Service's",
            owner.object
        ),
        "give each Service a ClusterIP of its own",
    );
}
