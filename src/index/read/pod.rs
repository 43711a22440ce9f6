//! Reading a Pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::{redirection, values};
use crate::index::Report;
use crate::index::facts::PodFacts;
use crate::index::keys;
use crate::model::{Health, ObjectRef, Reason, ServiceKey, Upstreams, is_dns_label, quoted};

/// How many wrong entries of a list are reported one by one.
const REPORTED: usize = 5;

/// The facts of a pod. A wrong annotation costs what it was to do, and is reported.
pub fn pod(
    pod: &Pod,
    object: &ObjectRef,
    origin: Option<Arc<str>>,
    report: &mut Report,
) -> PodFacts {
    let spec = pod.spec.as_ref();
    let status = pod.status.as_ref();
    let label = values::of(pod.metadata.labels.as_ref(), keys::MANAGED);
    let phase = status.and_then(|status| status.phase.as_deref());
    let first = status.and_then(|status| status.pod_ip.as_deref());
    let more = status.and_then(|s| s.pod_ips.as_ref()).into_iter().flatten().map(|ip| &*ip.ip);
    let mut ips = Vec::new();
    for ip in first.into_iter().chain(more).filter_map(|ip| ip.parse().ok()) {
        if !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    let account = spec.and_then(|spec| spec.service_account_name.as_deref());
    PodFacts {
        object: object.clone(),
        origin,
        uid: pod.metadata.uid.as_deref().filter(|uid| !uid.is_empty()).map(Arc::from),
        managed: label.map(|value| value == "true"),
        created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second()),
        running: phase == Some("Running"),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
        host_network: spec.and_then(|spec| spec.host_network).unwrap_or(false),
        ips,
        health: health(pod),
        service_account: account.filter(|name| !name.is_empty()).unwrap_or("default").into(),
        node: spec.and_then(|s| s.node_name.as_deref()).filter(|n| !n.is_empty()).map(Arc::from),
        port: port(pod, report),
        protocol: protocol(pod),
        weight: weight(pod, report),
        upstreams: upstreams(pod, &object.namespace, report),
        redirection: redirection::redirection(pod.metadata.annotations.as_ref(), report),
    }
}

/// Whether the registry has a use for this pod, now or once it runs.
pub fn is_present(read: &Pod) -> bool {
    let meta = &read.metadata;
    let name = |name: &Option<String>| name.as_deref().unwrap_or_default().to_owned();
    let object = ObjectRef::new("Pod", name(&meta.namespace), name(&meta.name));
    let facts = pod(read, &object, None, &mut Report::new(object.clone(), None));
    facts.registered() && !facts.finished
}

/// By the Ready condition (none: not ready); a pod that is being deleted is not ready but serves.
fn health(pod: &Pod) -> Health {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    match (pod.metadata.deletion_timestamp.is_some(), ready) {
        (true, _) => Health::Draining,
        (false, true) => Health::Ready,
        (false, false) => Health::Unready,
    }
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    values::of(pod.metadata.annotations.as_ref(), key)
}

fn port(pod: &Pod, report: &mut Report) -> Option<u16> {
    let text = annotation(pod, keys::ENDPOINT_PORT)?;
    let port = values::port(text);
    if port.is_none() {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::ENDPOINT_PORT),
            format!("{} is no port, so the pod is taken to serve on its Service's", quoted(text)),
            "give a number from 1 to 65535",
        );
    }
    port
}

/// A protocol word is short; every longer one is TCP, as all that is not known is.
fn protocol(pod: &Pod) -> Option<Arc<str>> {
    const LONGEST: usize = 63;
    let word = annotation(pod, keys::ENDPOINT_PROTOCOL)?;
    Some(if word.len() <= LONGEST { word } else { "tcp" }.into())
}

fn weight(pod: &Pod, report: &mut Report) -> u32 {
    let Some(text) = annotation(pod, keys::ENDPOINT_WEIGHT) else { return 1 };
    values::number(text, 1, 1000).unwrap_or_else(|| {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::ENDPOINT_WEIGHT),
            format!("{} is no weight, so the pod has the weight 1", quoted(text)),
            "give a number from 1 to 1000",
        );
        1
    })
}

/// How many upstreams a pod may list: each costs work whenever a Service comes or goes, and whoever
/// needs more is as well off with all.
const MOST_UPSTREAMS: usize = 1_000;

/// What the pod calls. An entry that is no service is left out alone, since the others say what they
/// say; where there is no other, the annotation says nothing.
fn upstreams(pod: &Pod, namespace: &Arc<str>, report: &mut Report) -> Upstreams {
    let Some(text) = annotation(pod, keys::UPSTREAMS) else { return Upstreams::All };
    let mut listed = BTreeSet::new();
    let mut wrong = Vec::new();
    let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let entries = items().count();
    if entries > MOST_UPSTREAMS {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::UPSTREAMS),
            format!("there are {entries} entries and at most {MOST_UPSTREAMS} are read, so the pod is given all services"),
            "list the services that the pod calls, or leave the annotation out",
        );
        return Upstreams::All;
    }
    for item in items() {
        if is_dns_label(item) {
            listed.insert(ServiceKey::new(namespace.clone(), item));
        } else if let Ok(key) = item.parse() {
            listed.insert(key);
        } else {
            wrong.push(item);
        }
    }
    let nothing = listed.is_empty() && !wrong.is_empty();
    for item in wrong.iter().take(REPORTED) {
        let costs = if nothing { "so the pod is given all services" } else { "so it is left out" };
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::UPSTREAMS),
            format!("{} is no mesh service, {costs}", quoted(item)),
            "list mesh names as name (of the pod's own namespace) or namespace/name, in lower case, with commas between them",
        );
    }
    if let Some(more) = wrong.len().checked_sub(REPORTED).filter(|more| *more > 0) {
        report.problem(
            Reason::InvalidValue,
            &values::annotation(keys::UPSTREAMS),
            format!("{more} more entries are no mesh services"),
            "correct those that are named, and see what is left",
        );
    }
    if nothing { Upstreams::All } else { Upstreams::Listed(Arc::new(listed)) }
}
