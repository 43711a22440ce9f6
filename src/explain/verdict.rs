//! The answer in a sentence or two.

use super::explanation::{Outcome, Path};
use super::words::list;
use super::{Speaks, Target};

/// The sentence. `more` are clauses that say why it is not otherwise.
pub(super) fn of(paths: &[Path], destination: &str, more: &[String]) -> String {
    let mut groups: Vec<(Vec<Speaks>, &Outcome)> = Vec::new();
    for path in paths {
        let same = groups.iter_mut().find(|(_, other)| alike(other, &path.outcome));
        match same {
            Some((speaks, _)) => speaks.extend(&path.speaks),
            None => groups.push((path.speaks.clone(), &path.outcome)),
        }
    }
    let alone = groups.len() == 1;
    let parts = groups.into_iter().map(|(speaks, end)| {
        let all = alone && speaks.len() > 1;
        let mut who =
            if all { "it".to_owned() } else { list(speaks.iter().map(|one| one.as_str())) };
        if let Some(first) = who.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        format!("{who} {}", outcome(end, destination, !all && speaks.len() > 1))
    });
    let mut sentences: Vec<String> = parts.collect();
    sentences.extend(more.iter().cloned());
    sentences
        .iter()
        .map(|sentence| format!("{}.", sentence.trim_end_matches('.')))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether two ends are the same to whoever sends, though by another cluster.
fn alike(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (
            Outcome::Service { service, port, endpoints, answer, .. },
            Outcome::Service { service: other, port: its, endpoints: whom, answer: what, .. },
        ) => service == other && port == its && endpoints == whom && answer == what,
        _ => a == b,
    }
}

fn outcome(outcome: &Outcome, destination: &str, many: bool) -> String {
    let is = if many { "are" } else { "is" };
    let verb = |one: &str, more: &str| if many { more.to_owned() } else { one.to_owned() };
    match outcome {
        Outcome::NotCaptured { why } => {
            format!(
                "{is} not captured and {} to {destination} as without the mesh: {why}",
                verb("goes", "go")
            )
        }
        Outcome::Unresolved { why } => {
            format!("{} nowhere, since the name does not resolve: {why}", verb("goes", "go"))
        }
        Outcome::Service { service, port, endpoints, answer, .. } => {
            match (endpoints.as_slice(), answer) {
                ([], answer) => format!(
                    "{is} for {service}, port {port}, which has no healthy endpoint: the client gets {}",
                    answer.as_deref().unwrap_or("nothing")
                ),
                ([one], _) => {
                    format!("{} {service}, port {port}, at {}", verb("reaches", "reach"), at(one))
                }
                ([first, rest @ ..], _) => format!(
                    "{} {service}, port {port}, at one of {} endpoints, {} the first of the nearest",
                    verb("reaches", "reach"),
                    rest.len() + 1,
                    at(first)
                ),
            }
        }
        Outcome::Passthrough { to } => {
            let to = to.as_deref().unwrap_or(destination);
            format!("{} through the proxy to {to}, as without the mesh", verb("passes", "pass"))
        }
        Outcome::Answered { status, body } => {
            format!("{is} answered by the proxy itself: {status} {:?}", body.trim_end())
        }
        Outcome::Closed { why } => format!("{is} closed by the proxy: {why}"),
    }
}

fn at(target: &Target) -> String {
    let pod = target.pod.as_ref().map(|pod| format!(" ({pod})")).unwrap_or_default();
    format!("{}{pod}", target.address)
}
