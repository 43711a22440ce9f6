//! What is wrong with the objects that have to do with an answer.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::evidence::Evidence;
use super::explanation::Found;
use crate::model::ObjectRef;

/// The findings on objects, in the order of these.
pub(super) fn on(objects: &BTreeSet<ObjectRef>, evidence: &Evidence) -> Vec<Found> {
    let found = objects.iter().flat_map(|object| evidence.on(object));
    let found = found.map(|(finding, since)| Found {
        object: finding.object.to_string(),
        finding: finding.to_string(),
        since: since.map(text),
    });
    found.collect()
}

/// ` since <when>`, or nothing where that is not known.
pub(super) fn since(since: Option<Timestamp>) -> String {
    since.map(|since| format!(" since {}", text(since))).unwrap_or_default()
}

/// To the second, as Kubernetes writes times.
fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
