//! How the pod's resolver takes a name, and what answers.

mod answer;

use std::net::IpAddr;
use std::sync::Arc;

use answer::{Answer, inside};

use super::envoy::{NamesListener, Undecodable};
use super::evidence::Evidence;
use super::explanation::{Step, Topic};
use super::words::{count, list};
use crate::dns::table::Table;
use crate::model::{MeshService, PodKey, RecordsFile, ServiceKey};
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
    /// Who knows it.
    pub by: Knows,
}

/// Who knows whether a name exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Knows {
    /// We do: it exists, or is an address.
    Here,
    /// The cluster's DNS alone, which is asked for this spelling.
    Upstream(String),
    /// We do: there is no such name, for the reason given, the end of a sentence.
    Nobody(String),
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
                    step.says = format!("{} {who}", Self::asked(host, one));
                    step.notes.splice(0..0, self.notes(host, one, &before));
                    return (*resolved, step);
                }
                Answer::Nothing | Answer::Elsewhere => before.push(one.clone()),
            }
        }
        let elsewhere = tries.iter().find(|one| matches!(self.answer(one), Answer::Elsewhere));
        let (says, by) = if let Some(one) = elsewhere {
            let says = format!(
                "{one} is no name that is known here: it is asked upstream, whatever that answers"
            );
            (says, Knows::Upstream(one.clone()))
        } else {
            let why = self.why_not(&tries);
            (format!("{host} does not resolve: {why}"), Knows::Nobody(why))
        };
        let key = self.key_of(&tries);
        let nobody = Resolved { addresses: Vec::new(), service: None, key, by };
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

    fn asked(host: &str, found: &str) -> String {
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

    /// Whether the pod's queries go to a `dns_filter` that asks nobody.
    fn mesh_names_alone(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| !listener.forwards())
    }

    /// Why a name is nobody's.
    fn why_not(&self, tries: &[String]) -> String {
        let domain = self.evidence.settings.names.domain();
        if self.mesh_names_alone() && !tries.iter().any(|name| inside(name, domain).is_some()) {
            return format!(
                "dns_filter, in the proxy itself, answers the names of {domain} alone; give the address of the cluster's DNS with --dns-upstream"
            );
        }
        let headless = |service: &&Arc<MeshService>| !service.has_mesh_name();
        let key = self.key_of(tries);
        match key.and_then(|key| self.evidence.service(&key)).filter(headless) {
            Some(service) => format!(
                "{} has no ClusterIP, so it has no mesh name; ask for {}.{}.svc",
                super::evidence::object_of(service),
                service.service,
                service.key.namespace
            ),
            None => "no Service here has this name".to_owned(),
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
