//! What the generator has to report.

use std::fmt::Display;

use super::act::Outcome;
use super::plan::Operation;
use super::state::Tried;
use crate::model::{
    Accounts, Finding, ObjectRef, Reason, Said, ServiceKey, Severity, is_dns_label, quoted,
};

/// About a ServiceAccount whose pods run.
pub(super) fn of_workload(key: &ServiceKey, accounts: &Accounts) -> Vec<Finding> {
    let Some(workload) = accounts.running.get(&key.name) else { return Vec::new() };
    let account = ObjectRef::new("ServiceAccount", key.namespace.clone(), key.name.clone());
    if !is_dns_label(&key.name) {
        return vec![finding(
            account,
            Severity::Problem,
            Reason::NotGenerated,
            "metadata.name",
            format!(
                "{} is no DNS label, so there is no mesh Service for its pods",
                quoted(&key.name)
            ),
            "use a ServiceAccount with a name of at most 63 of a-z, 0-9 and '-', or make a Service for its pods",
        )];
    }
    // Where a user's Service stands for them, what they say is not looked at.
    if accounts.claimed.contains_key(&key.name) {
        return Vec::new();
    }
    let port = disagreement(&account, "endpoint.aether.io/port", &workload.port);
    let protocol = disagreement(&account, "endpoint.aether.io/protocol", &workload.protocol);
    port.into_iter().chain(protocol).collect()
}

fn disagreement<T: Display>(
    account: &ObjectRef,
    annotation: &str,
    said: &Said<T>,
) -> Option<Finding> {
    let (pod, otherwise) = said.otherwise.as_ref()?;
    let words = |value: &Option<T>| {
        value.as_ref().map_or("none".to_owned(), |value| quoted(&value.to_string()))
    };
    Some(finding(
        account.clone(),
        Severity::Warning,
        Reason::ConflictingPods,
        &format!("Pod.metadata.annotations[{annotation}]"),
        format!(
            "its pods do not agree: the oldest, {}, has {}, which counts, and {pod} has {}",
            said.by,
            words(&said.value),
            words(otherwise)
        ),
        "nothing is to be done while they are being replaced; else give all of them the same value, or a ServiceAccount of their own",
    ))
}

/// About what could not be done.
pub(super) fn of_attempt(operation: &Operation, tried: &Tried) -> Option<Finding> {
    let key = operation.key();
    let of = |kind| ObjectRef::new(kind, key.namespace.clone(), key.name.clone());
    let deleting = matches!(operation, Operation::Delete(..));
    match &tried.outcome {
        Outcome::Taken => Some(finding(
            of("ServiceAccount"),
            Severity::Problem,
            Reason::NotGenerated,
            "metadata.name",
            format!(
                "the Service {key} exists already and was not generated, so it is left alone and there is no mesh Service for the pods of this ServiceAccount"
            ),
            "label that Service aether.io/mesh-service=true if it stands for these pods, or give it or the ServiceAccount another name",
        )),
        Outcome::Refused(words) if deleting => Some(finding(
            of("Service"),
            Severity::Warning,
            Reason::NotGenerated,
            "",
            format!("it is not needed any more and cannot be deleted: {}", long(words)),
            "see to what the API server says, or delete it by hand; it is tried again",
        )),
        Outcome::Refused(words) => Some(finding(
            of("ServiceAccount"),
            Severity::Problem,
            Reason::NotGenerated,
            "metadata.name",
            format!("the mesh Service {key} cannot be written: {}", long(words)),
            "see to what the API server says; it is tried again",
        )),
        _ => None,
    }
}

/// The words of an API server, which say most of what there is to know, without line breaks.
fn long(words: &str) -> String {
    const MOST: usize = 400;
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST).collect()
}

fn finding(
    object: ObjectRef,
    severity: Severity,
    reason: Reason,
    field: &str,
    message: String,
    way_out: &str,
) -> Finding {
    Finding {
        object,
        severity,
        reason,
        origin: None,
        field: field.to_owned(),
        message,
        way_out: way_out.to_owned(),
    }
}
