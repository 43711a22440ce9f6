//! The first step: whose connection it is, and whether the mesh has to do with it.

use super::evidence::Evidence;
use super::explanation::{Step, Topic};
use super::findings::since;
use crate::index::{MANAGED, PodFacts};
use crate::model::{Place, PodKey, quoted};

/// What the step says, and why the pod's connections are not captured, where they are not.
pub(super) fn step(pod: &PodFacts, key: &PodKey, evidence: &Evidence) -> (Step, Option<String>) {
    let label = format!("metadata.labels[{MANAGED}]");
    let object = &pod.object;
    let (step, why) = if evidence.about.never_touched {
        let why = format!("the namespace {} is never touched", key.namespace);
        let rule = "pods and Services of this namespace are left alone, whatever their labels";
        let step = Step::new(Topic::Pod, format!("{key} is not in the mesh"));
        (step.because(object, "metadata.namespace", &*key.namespace, rule), Some(why))
    } else if pod.managed != Some(true) {
        let mut step = Step::new(Topic::Pod, format!("{key} is not in the mesh")).because(
            object,
            label,
            if pod.managed.is_some() { "other than \"true\"" } else { "(absent)" },
            "a pod is in the mesh when its own label says \"true\"; that of its namespace acts when a pod is created",
        );
        if evidence.about.namespace_managed && pod.managed.is_none() {
            step = step
                .note("its namespace is in the mesh: make the pod anew, and admission labels it");
        }
        (step, Some("the pod is not in the mesh".to_owned()))
    } else {
        let rule = "its own label puts a pod into the mesh";
        let step = Step::new(Topic::Pod, format!("{key} is in the mesh"));
        let step = step.because(object, label, "\"true\"", rule);
        if pod.host_network {
            let rule = "nothing is redirected in the network of a node";
            let step = step.because(object, "spec.hostNetwork", "true", rule);
            (step, Some("the pod is on the network of its node".to_owned()))
        } else if evidence.view.is_none() {
            let step = step.note("its proxy gets nothing: see the findings");
            (step, Some("nothing is served to the pod's proxy".to_owned()))
        } else {
            (step, None)
        }
    };
    (about(pod, key, evidence, step), why)
}

/// Where it runs, and as whom.
fn about(pod: &PodFacts, key: &PodKey, evidence: &Evidence, step: Step) -> Step {
    let account = format!("it runs as ServiceAccount {}/{}", key.namespace, pod.service_account);
    let known = evidence.projection.pods.get(key).map(|pod| &pod.place);
    let place = match (known, &pod.node) {
        (Some(Place { node: Some(node), locality: Some(own) }), _) => {
            format!("on Node {node}, region {} and zone {}", quoted(&own.region), quoted(&own.zone))
        }
        (Some(Place { node: Some(node), locality: None }), _) => format!(
            "on Node {node}, whose region and zone are not known: all endpoints are equally near"
        ),
        (_, Some(node)) => format!("on Node {node}"),
        (_, None) => "on no node yet".to_owned(),
    };
    let step = step.note(format!("{account} {place}"));
    let step = match &evidence.node_proxy {
        Some(id) => step.note(format!(
            "its proxy is {id}, that of its whole node, since its network namespace is pinned in the folder of --netns-dir"
        )),
        None => step,
    };
    match &evidence.proxy {
        Some(proxy) if !proxy.connected => step.note("its proxy is not connected to this server"),
        Some(proxy) if proxy.refused.is_empty() => {
            step.note("its proxy is connected to this server, and refuses nothing")
        }
        Some(_) => step.note("its proxy is connected to this server, and refuses what it is sent"),
        None => step,
    }
}

/// What the proxy refuses, a clause for each type: what it does may be what it did before.
pub(super) fn refusals(evidence: &Evidence) -> impl Iterator<Item = String> {
    let refused = evidence.proxy.iter().flat_map(|proxy| &proxy.refused);
    refused.map(|(kind, time, words)| {
        let since = since(Some(*time));
        format!("But the pod's proxy refuses what it is sent of {kind}{since}, and may do as it did before: {words}")
    })
}
