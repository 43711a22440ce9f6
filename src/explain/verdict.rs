//! The answer in a sentence or two.

use super::Target;
use super::explanation::{Outcome, Path};
use super::words::list;

/// The sentence. `more` are clauses that say why it is not otherwise.
pub(super) fn of(paths: &[Path], destination: &str, more: &[String]) -> String {
    let alone = paths.len() == 1;
    let parts = paths.iter().map(|path| {
        let who = if alone && path.speaks.len() > 1 {
            "It".to_owned()
        } else {
            let mut who = list(path.speaks.iter().map(|one| one.as_str()));
            if let Some(first) = who.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            who
        };
        let many = !(alone && path.speaks.len() > 1) && path.speaks.len() > 1;
        format!("{who} {}", outcome(&path.outcome, destination, many))
    });
    let mut sentences: Vec<String> = parts.collect();
    sentences.extend(more.iter().cloned());
    sentences
        .iter()
        .map(|sentence| format!("{}.", sentence.trim_end_matches('.')))
        .collect::<Vec<_>>()
        .join(" ")
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
