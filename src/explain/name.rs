//! How the pod's resolver takes a name, and what answers.

use std::net::IpAddr;
use std::sync::Arc;

use super::envoy::{NamesListener, Undecodable};
use super::evidence::Evidence;
use super::explanation::{Step, Topic};
use super::words::{count, list};
use crate::dns::table::{Found, Table};
use crate::model::{PodKey, RecordsFile, ServiceKey};
use crate::translate::naming;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The addresses, IPv4 first; empty where nobody here knows them.
    pub addresses: Vec<IpAddr>,
    /// The Service that it names, as namespace and name; of a mesh name, `None`.
    pub service: Option<(Arc<str>, Arc<str>)>,
    /// The mesh service that it names, whether there is one or not.
    pub key: Option<ServiceKey>,
}

/// What one spelling leads to.
enum Answer {
    /// Addresses, and of which Service; a sentence says who answers.
    Known(Resolved, String, Step),
    /// It does not exist, or has no address.
    Nothing,
    /// Outside of what is known here.
    Elsewhere,
}

/// Names as one pod sees them.
pub(super) struct Names<'a> {
    evidence: &'a Evidence,
    pod: &'a PodKey,
    /// What the DNS listener knows, where the pod has one that is used.
    listener: Option<NamesListener>,
    table: Table,
    /// How many dots make a name one that is asked as it is first.
    ndots: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        evidence: &'a Evidence,
        pod: &'a PodKey,
        managed: bool,
    ) -> Result<Self, Undecodable> {
        let name = naming::dns_listener(pod);
        let listener = evidence.view.as_ref().map(|view| NamesListener::of(view, &name));
        let records = RecordsFile::following(None, &evidence.projection.records(), 0);
        let labels = evidence.settings.names.domain().split('.').count();
        // What Kubernetes gives a pod that admission has not touched.
        let ndots = if managed { labels } else { 5 };
        Ok(Self {
            evidence,
            pod,
            listener: listener.transpose()?.flatten(),
            table: Table::new(&records).0,
            ndots,
        })
    }

    /// What a name leads to, and the step that says so.
    pub(super) fn resolve(&self, host: &str) -> (Resolved, Step) {
        let tries = self.tries(host);
        let mut before = Vec::new();
        for one in &tries {
            match self.answer(one) {
                Answer::Known(resolved, who, step) => {
                    let mut step = step;
                    step.says = format!("{} {who}", self.asked(host, one));
                    step.notes.splice(0..0, self.notes(host, one, &before));
                    return (resolved, step);
                }
                Answer::Nothing | Answer::Elsewhere => before.push(one.clone()),
            }
        }
        let nobody = Resolved { addresses: Vec::new(), service: None, key: self.key_of(&tries) };
        let elsewhere = tries.iter().find(|one| matches!(self.answer(one), Answer::Elsewhere));
        let says = match elsewhere {
            Some(one) => format!(
                "{one} is no name that is known here: it is asked upstream, whatever that answers"
            ),
            None => format!("{host} does not exist: {}", self.why_not()),
        };
        let mut step = Step::new(Topic::Name, says);
        if tries.len() > 1 {
            let unknown: Vec<_> =
                tries.iter().filter(|one| Some(*one) != elsewhere).cloned().collect();
            step = step.note(self.order(host, &unknown));
        }
        (nobody, self.namesakes(host).into_iter().fold(step, Step::note))
    }

    /// The spellings that are asked, in their order.
    fn tries(&self, host: &str) -> Vec<String> {
        if let Some(absolute) = host.strip_suffix('.') {
            return vec![absolute.to_owned()];
        }
        let cluster = self.evidence.settings.names.cluster_domain();
        let namespace = &self.pod.namespace;
        let search =
            [format!("{namespace}.svc.{cluster}"), format!("svc.{cluster}"), cluster.to_owned()];
        let mut tries: Vec<_> = search.iter().map(|domain| format!("{host}.{domain}")).collect();
        let at = if host.matches('.').count() >= self.ndots { 0 } else { tries.len() };
        tries.insert(at, host.to_owned());
        tries
    }

    fn answer(&self, name: &str) -> Answer {
        let names = &self.evidence.settings.names;
        if let Some(inside) = inside(name, names.domain()) {
            return self.mesh_name(name, &inside);
        }
        let svc = format!("svc.{}", names.cluster_domain());
        if let Some(inside) = inside(name, &svc) {
            return self.cluster_name(&inside, "the cluster's DNS answers it with");
        }
        let labels: Vec<_> = name.split('.').collect();
        if let ([service, namespace, "svc"], None) = (labels.as_slice(), &self.listener) {
            let who = format!("mesh-dns asks for it in {}, and it is", names.cluster_domain());
            return self.cluster_name(&[*service, *namespace], &who);
        }
        if inside(name, names.cluster_domain()).is_some() {
            Answer::Nothing
        } else {
            Answer::Elsewhere
        }
    }

    /// A name of the mesh domain.
    fn mesh_name(&self, name: &str, labels: &[&str]) -> Answer {
        let records = self.evidence.projection.short_names();
        let key = match labels {
            [one] => records.get(*one).cloned(),
            [one, namespace] => Some(ServiceKey::new(*namespace, *one)),
            _ => None,
        };
        let (addresses, who) = match &self.listener {
            Some(listener) => (listener.addresses(name), "dns_filter, in the proxy itself,"),
            None => match self.table.find(labels) {
                Found::Name(of) => {
                    let v4 = of.v4.map(IpAddr::V4);
                    (v4.into_iter().chain(of.v6.map(IpAddr::V6)).collect(), "mesh-dns")
                }
                _ => (Vec::new(), ""),
            },
        };
        let Some(key) = key.filter(|_| !addresses.is_empty()) else { return Answer::Nothing };
        let says = format!("is a name of the mesh, which {who} answers with {}", list(&addresses));
        let mut step = Step::new(Topic::Name, "");
        if let Some(service) = self.evidence.service(&key) {
            let object = super::evidence::object_of(service);
            let ips = list(&service.cluster_ips);
            let rule = format!("{name} is the name of {key}, with the addresses of its Service");
            step = step.because(&object, "spec.clusterIPs", ips, rule);
            if labels.len() == 1 {
                step = self.short_name(&key, step);
            }
        }
        Answer::Known(Resolved { addresses, service: None, key: Some(key) }, says, step)
    }

    /// Why a short name is whose it is.
    fn short_name(&self, owner: &ServiceKey, mut step: Step) -> Step {
        let others = self.evidence.projection.services.values().filter(|other| {
            other.key.name == owner.name && other.key != *owner && other.has_mesh_name()
        });
        for other in others {
            let object = super::evidence::object_of(other);
            let mut lost = self.evidence.on(&object);
            let lost =
                lost.find(|(finding, _)| finding.reason == crate::model::Reason::LostShortName);
            if let Some((finding, since)) = lost {
                let since = super::findings::since(since);
                step = step.note(format!(
                    "this name is ambiguous: {object} claims it too{since}, but {}",
                    finding.message
                ));
            }
        }
        step
    }

    /// A name below `svc.<cluster domain>`.
    fn cluster_name(&self, labels: &[&str], who: &str) -> Answer {
        let (pod, name, namespace) = match labels {
            [name, namespace] => (None, *name, *namespace),
            [pod, name, namespace] => (Some(*pod), *name, *namespace),
            _ => return Answer::Nothing,
        };
        let service: (Arc<str>, Arc<str>) = (namespace.into(), name.into());
        let (headless, ips, external) = match (
            self.evidence.about.services.get(&service),
            self.evidence.about.others.get(&service),
        ) {
            (Some(facts), _) => (facts.headless, facts.cluster_ips.clone(), None),
            (None, Some(other)) => {
                (other.headless, other.cluster_ips.clone(), other.external_name.clone())
            }
            (None, None) => return Answer::Nothing,
        };
        let object = format!("Service {namespace}/{name}");
        let mut resolved = Resolved { addresses: ips, service: Some(service), key: None };
        let step = Step::new(Topic::Name, "");
        if let Some(pod) = pod {
            if !headless {
                return Answer::Nothing;
            }
            let says =
                format!("is the name of the pod {pod} behind {object}; {who} that pod's address");
            let rule = "the name of a pod behind a headless Service is no name of that Service";
            resolved.addresses.clear();
            return Answer::Known(
                resolved,
                says,
                step.because(object, "spec.clusterIP", "None", rule),
            );
        }
        if let Some(external) = external {
            let says = format!("is {object}; {who} the alias {external}");
            let rule = "an ExternalName Service has no address: its name stands for another one";
            return Answer::Known(
                resolved,
                says,
                step.because(object, "spec.externalName", &*external, rule),
            );
        }
        if headless {
            let pods = self.evidence.mesh_service_of(namespace, name);
            let pods = pods
                .into_iter()
                .flat_map(|service| &service.ports)
                .flat_map(|port| &port.endpoints);
            let mut ips: Vec<_> = pods
                .filter(|one| one.health != crate::model::Health::Unready)
                .map(|one| one.address)
                .collect();
            ips.sort();
            ips.dedup();
            resolved.addresses = ips;
            let found = if resolved.addresses.is_empty() {
                "its pods".to_owned()
            } else {
                format!("its pods, {}", list(&resolved.addresses))
            };
            let rule = "a headless Service has no address of its own, only those of its pods";
            let says = format!("is {object}; {who} {found}");
            return Answer::Known(
                resolved,
                says,
                step.because(object, "spec.clusterIP", "None", rule),
            );
        }
        let found = if resolved.addresses.is_empty() {
            "nothing: it has no ClusterIP yet".to_owned()
        } else {
            list(&resolved.addresses)
        };
        let rule = "the name that Kubernetes gives a Service, with its addresses";
        let says = format!("is {object}; {who} {found}");
        Answer::Known(resolved, says, step.because(object, "spec.clusterIPs", found.clone(), rule))
    }

    /// Services that bear a bare name in other namespaces, where it does not mean them.
    fn namesakes(&self, host: &str) -> Option<String> {
        let services = self.evidence.projection.services.values();
        let same = services.filter(|one| *one.service == *host || *one.key.name == *host);
        let objects: Vec<_> = same.map(|one| super::evidence::object_of(one)).collect();
        let first = objects.first()?;
        Some(format!(
            "{} has this name: a bare name means the pod's own namespace alone, so ask for {}.{}",
            list(&objects),
            first.name,
            first.namespace
        ))
    }

    fn asked(&self, host: &str, found: &str) -> String {
        let plain = host.strip_suffix('.').unwrap_or(host);
        if plain == found {
            plain.to_owned()
        } else {
            format!("{plain} is asked as {found}, which")
        }
    }

    fn notes(&self, host: &str, found: &str, before: &[String]) -> Vec<String> {
        let mut notes = Vec::new();
        if host != found && !host.ends_with('.') {
            notes.push(self.order(host, before));
        }
        if before.first().is_some_and(|first| first == host) {
            notes.push(format!("musl (Alpine) does not get so far: it never tries its search list on a name of {} dots or more", self.ndots));
        }
        notes
    }

    fn order(&self, host: &str, tried: &[String]) -> String {
        let dots = host.matches('.').count();
        let how =
            if dots >= self.ndots { "as it is first" } else { "through the search list first" };
        let tried =
            if tried.is_empty() { String::new() } else { format!("; no answer: {}", list(tried)) };
        format!(
            "with {} and ndots:{} the pod's resolver asks for it {how}{tried}",
            count(dots, "dot"),
            self.ndots
        )
    }

    fn why_not(&self) -> &'static str {
        match &self.listener {
            Some(listener) if listener.forwards() => "nothing here answers it",
            _ => "no Service here has this name",
        }
    }

    /// The mesh service that a name means, if it is a mesh name that is nobody's.
    fn key_of(&self, tries: &[String]) -> Option<ServiceKey> {
        let domain = self.evidence.settings.names.domain();
        tries.iter().find_map(|name| match inside(name, domain)?.as_slice() {
            [name, namespace] => Some(ServiceKey::new(*namespace, *name)),
            _ => None,
        })
    }
}

/// The labels of a name before a domain; `None` for a name outside of it.
fn inside<'n>(name: &'n str, domain: &str) -> Option<Vec<&'n str>> {
    let rest = name.strip_suffix(domain)?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    Some(rest.strip_suffix('.')?.split('.').collect())
}
