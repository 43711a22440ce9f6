//! Why a node would get nothing yet.

use crate::model::{NodeId, ObjectRef, PodKey, quoted};
use crate::run::Once;

/// How many pods are named at most.
const MOST: usize = 5;

/// How alike two names must be, of 1.
const ALIKE: f64 = 0.8;

/// Why the node waits, and what to do about it.
pub(super) fn why(id: &NodeId, once: &Once) -> String {
    let key = match id {
        NodeId::Pod(key) => key,
        NodeId::Node(name) => return of_node(id, name, once),
    };
    match once.pods.get(key) {
        None => format!(
            "{id} waits: no pod {key} is among the {} that were read; {}",
            once.pods.len(),
            suggestion(key, once)
        ),
        Some(Some(value)) if value == "true" => {
            let pod = ObjectRef::new("Pod", key.namespace.clone(), key.name.clone());
            let found: Vec<_> =
                once.findings.iter().filter(|f| f.object == pod).map(ToString::to_string).collect();
            let why = match found.as_slice() {
                [] => "is its namespace one of those never touched?".to_owned(),
                found => found.join("; "),
            };
            format!("{id} waits: pod {key} is labelled, but not taken into the mesh: {why}")
        }
        Some(label) => {
            let says = match label {
                None => "it has no label aether.io/managed of its own".to_owned(),
                Some(value) => format!("its label aether.io/managed is {}", quoted(value)),
            };
            format!(
                "{id} waits: pod {key} is not managed, since {says} (that of the namespace acts \
                 at admission alone); label the pod aether.io/managed=true"
            )
        }
    }
}

/// Why a node proxy waits.
fn of_node(id: &NodeId, name: &str, once: &Once) -> String {
    if once.projection.pins.is_none() {
        return format!(
            "{id} waits: there is no folder of pinned network namespaces; name the one that is on \
             that node with --netns-dir"
        );
    }
    let pods = once.projection.pods.values().filter_map(|pod| pod.place.node.as_ref());
    let mut known: Vec<_> = once.projection.nodes.keys().chain(pods).collect();
    known.sort();
    known.dedup();
    let alike = |node: &str| strsim::jaro_winkler(name, node);
    known.sort_by(|a, b| alike(b).total_cmp(&alike(a)));
    let near: Vec<_> = known.iter().take(MOST).map(|node| format!("node/{node}")).collect();
    let way_out = match near.as_slice() {
        [] => "no node is, and no managed pod runs on one".to_owned(),
        near => format!("known are {}", near.join(", ")),
    };
    format!("{id} waits: no node {} is known: {way_out}", quoted(name))
}

/// The managed pods that may have been meant.
fn suggestion(key: &PodKey, once: &Once) -> String {
    let managed = || once.projection.pods.keys();
    let wanted = key.to_string();
    let mut near: Vec<_> = managed()
        .map(|pod| {
            let score = strsim::jaro_winkler(&wanted, &pod.to_string());
            (if pod.name == key.name { 1.0 } else { score }, pod)
        })
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let near: Vec<_> = near.into_iter().map(|(_, pod)| pod).take(MOST).collect();
    let list = |pods: &[&PodKey]| {
        pods.iter().map(|pod| format!("pod/{pod}")).collect::<Vec<_>>().join(", ")
    };
    if !near.is_empty() {
        return format!("did you mean {}?", list(&near));
    }
    let some: Vec<_> = managed().take(MOST).collect();
    match some.as_slice() {
        [] => {
            "none of them is managed: label those that are to be aether.io/managed=true".to_owned()
        }
        some if some.len() < once.projection.pods.len() => {
            format!("managed are {} and others", list(some))
        }
        some => format!("managed are {}", list(some)),
    }
}
