//! Where a connection of a pod goes, step by step, and which object, field and rule decided each.
//!
//! What the proxy does is decided from the very resources that it is served, decoded and matched as
//! Envoy matches them; the rules by which they were made are not written down a second time. The
//! objects behind them come from the index. Pure: [`Evidence`] in, [`Explanation`] out.

mod carry;
mod envoy;
mod evidence;
mod explanation;
mod findings;
mod name;
mod pod;
mod question;
mod redirect;
mod service;
mod text;
mod upstream;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

pub use envoy::Undecodable;
pub use evidence::{Evidence, Proxy};
pub use explanation::{Because, Explanation, Found, Outcome, Path, Step, Target, Topic};
pub use question::{ASSUMED_PORT, Destination, DestinationError, Host, Question, Speaks};
pub use text::text;

use carry::Carried;
use envoy::Capture;
use name::{Knows, Names, Resolved};
use service::Standing;

use crate::model::{ObjectRef, PodKey};
use crate::translate::naming;

/// Why there is no explanation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// No such pod is known.
    #[error(
        "no pod {0} is known{1}: write --pod <namespace>/<name>, and see that the pod exists and has the label aether.io/managed=true (of an API server, a running server follows no others)"
    )]
    NoPod(PodKey, String),
    /// What is served cannot be read.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
}

/// Answers a question.
///
/// # Errors
/// Where the pod is not known, or what is served to it cannot be read, which is a defect.
pub fn explain(question: &Question, evidence: &Evidence) -> Result<Explanation, ExplainError> {
    let Some(pod) = &evidence.about.pod else {
        return Err(ExplainError::NoPod(question.pod.clone(), near(&question.pod, evidence)));
    };
    let destination = &question.destination;
    let (mut first, outside) = pod::step(pod, &question.pod, evidence);
    if !destination.port_said {
        first = first.note(format!("no port was named: {ASSUMED_PORT} is meant, as with http://"));
    }
    let mut steps = vec![first];
    let resolved = match &destination.host {
        Host::Ip(ip) => {
            Resolved { addresses: vec![*ip], service: None, key: None, by: Knows::Here }
        }
        Host::Name(name) => {
            let names = Names::new(evidence, &question.pod, pod.managed == Some(true))?;
            let (resolved, step) = names.resolve(name);
            steps.push(step);
            resolved
        }
    };
    let standing = service::meant(&destination.host, &resolved, &question.pod, evidence);
    steps.extend(service::step(&standing, &question.pod, evidence));
    let to = resolved.addresses.first().copied();
    let ends = |outcome| vec![Path { speaks: question.all(), steps: Vec::new(), outcome }];
    let paths = if let Knows::Nobody(why) = &resolved.by {
        // Nobody connects to an address that there is not, so no proxy has to do with it.
        ends(Outcome::Unresolved { why: why.clone() })
    } else {
        let not_captured = if outside.is_some() {
            outside
        } else {
            let (step, why) = redirect::step(pod, to, destination.port, evidence);
            steps.push(step);
            why
        };
        match not_captured {
            Some(why) => ends(Outcome::NotCaptured { why }),
            None => carried(question, evidence, to, &mut steps)?,
        }
    };
    let mut more = Vec::new();
    if let Knows::Upstream(name) = &resolved.by {
        more.push(format!(
            "But {name} is no name of the mesh or of the cluster's Services: whether it resolves at all, the DNS of the cluster decides"
        ));
    }
    more.extend(clauses(&standing, &paths, &question.pod, evidence));
    more.extend(pod::refusals(evidence));
    let asked = destination.to_string();
    Ok(Explanation {
        pod: question.pod.to_string(),
        verdict: verdict::of(&paths, &asked, &more),
        destination: asked,
        findings: findings::on(&objects(&standing, &paths, pod.object.clone(), evidence), evidence),
        steps,
        paths,
    })
}

/// What the proxy does with it, by what it speaks; ways that are the same are one.
fn carried(
    question: &Question,
    evidence: &Evidence,
    to: Option<IpAddr>,
    steps: &mut Vec<Step>,
) -> Result<Vec<Path>, ExplainError> {
    let closed = |why: &str| {
        let outcome = Outcome::Closed { why: why.to_owned() };
        Ok(vec![Path { speaks: question.all(), steps: Vec::new(), outcome }])
    };
    let name = naming::capture_listener(&question.pod);
    let Some(view) = &evidence.view else { return closed("nothing is served to the proxy") };
    let Some(capture) = Capture::of(view, &name)? else {
        return closed("the proxy has no capture listener");
    };
    if to.is_some_and(|ip| !capture.listens_like(ip)) {
        return closed("the pod has no IPv6 address, so its proxy does not listen on [::1]");
    }
    let inspects = capture.inspects(question.destination.port);
    steps.push(inspection(inspects, question.destination.port));
    let carried = Carried {
        evidence,
        view,
        capture: &capture,
        listener: &name,
        destination: &question.destination,
        to,
        inspects,
    };
    let mut paths: Vec<Path> = Vec::new();
    for speaks in question.all() {
        let path = carried.path(speaks)?;
        let same =
            paths.iter_mut().find(|one| one.steps == path.steps && one.outcome == path.outcome);
        match same {
            Some(same) => same.speaks.push(speaks),
            None => paths.push(path),
        }
    }
    Ok(paths)
}

fn inspection(inspects: envoy::Inspects, port: u16) -> Step {
    if !inspects.any {
        let rule = "where one port alone is captured, no connection waits for its first bytes";
        let step = Step::new(Topic::Inspection, "the first bytes are not looked at");
        return step.because("option", "--capture-mode", "scoped", rule);
    }
    if inspects.http || inspects.tls {
        let says = "the first bytes are looked at, for 1 s at most";
        let rule = "HTTP and TLS are told by their first bytes";
        return Step::new(Topic::Inspection, says).because(
            "the proxy's listener",
            "listener_filters",
            "",
            rule,
        );
    }
    let rule = "on these ports the server speaks first, so nothing waits for the client, and HTTP is not recognised";
    let says = "the first bytes are not looked at";
    Step::new(Topic::Inspection, says).because(
        "option",
        "--server-first-ports",
        port.to_string(),
        rule,
    )
}

/// What has to be said besides where it goes.
fn clauses(standing: &Standing, paths: &[Path], pod: &PodKey, evidence: &Evidence) -> Vec<String> {
    match standing {
        Standing::Not(object, why) => vec![format!("{object} {why}")],
        Standing::Captured(service) => {
            let key = service.key.to_string();
            let reached = paths.iter().any(
                |path| matches!(&path.outcome, Outcome::Service { service, .. } if *service == key),
            );
            let listed = service::scoped_out(service, pod, evidence).filter(|_| !reached);
            let clause = listed.map(|listed| {
                format!(
                    "{key} is scoped out: {} of Pod {pod} lists {listed}",
                    service::UPSTREAMS_FIELD
                )
            });
            clause.into_iter().collect()
        }
        Standing::Unknown => Vec::new(),
    }
}

/// The objects whose findings have to do with it.
fn objects(
    standing: &Standing,
    paths: &[Path],
    pod: ObjectRef,
    evidence: &Evidence,
) -> BTreeSet<ObjectRef> {
    let mut objects = BTreeSet::from([pod]);
    match standing {
        Standing::Captured(service) => objects.extend([evidence::object_of(service)]),
        Standing::Not(object, _) => objects.extend([object.clone()]),
        Standing::Unknown => {}
    }
    for path in paths {
        let Outcome::Service { service, .. } = &path.outcome else { continue };
        let service = service.parse().ok().and_then(|key| evidence.service(&key));
        objects.extend(service.map(|service| evidence::object_of(service)));
    }
    let slices = objects.iter().filter_map(|object| evidence.behind.get(object));
    let slices: Vec<_> =
        slices.flat_map(|all| all.values()).filter_map(|one| one.slice.clone()).collect();
    objects.extend(slices);
    objects
}

/// Pods of the same name elsewhere, or near ones.
fn near(pod: &PodKey, evidence: &Evidence) -> String {
    const ALIKE: f64 = 0.95;
    let wanted = pod.to_string();
    let mut near: Vec<_> = evidence
        .projection
        .pods
        .keys()
        .map(|other| {
            (
                if other.name == pod.name {
                    1.0
                } else {
                    strsim::jaro_winkler(&wanted, &other.to_string())
                },
                other,
            )
        })
        .filter(|(alike, _)| *alike >= ALIKE)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let near: Vec<_> = near.into_iter().map(|(_, pod)| pod).take(3).collect();
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", words::list(near)) }
}
