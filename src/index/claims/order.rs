//! The order of claims: who comes first where several claim one thing.

use std::cmp::Ordering;

use crate::index::facts::ServiceFacts;

/// A user's before a generated one, one that bears the name as its own before one renamed to it,
/// then the older, then by name, then by namespace. No two Services are equal in it.
type Order<'a> = (bool, bool, i64, &'a str, &'a str);

fn order(facts: &ServiceFacts) -> Order<'_> {
    let renamed = facts.mesh_name != facts.object.name;
    let created = facts.created.unwrap_or(i64::MAX);
    (facts.generated, renamed, created, &facts.object.name, &facts.object.namespace)
}

/// Which of two comes first; equal where both are of one Service and claim alike.
pub(super) fn compare(a: &ServiceFacts, b: &ServiceFacts) -> Ordering {
    order(a).cmp(&order(b))
}

/// Why one claim comes before another, in words.
pub(super) fn why(winner: &ServiceFacts, loser: &ServiceFacts) -> &'static str {
    let (w, l) = (order(winner), order(loser));
    if w.0 != l.0 {
        "which was not generated"
    } else if w.1 != l.1 {
        "which bears the name as its own"
    } else if w.2 != l.2 {
        "which is older"
    } else {
        "which comes first by name"
    }
}
