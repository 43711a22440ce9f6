//! What one spelling of a name leads to.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Knows, Names, Resolved};
use crate::dns::table::Found;
use crate::explain::evidence::object_of;
use crate::explain::explanation::{Step, Topic};
use crate::explain::findings::since;
use crate::explain::words::list;
use crate::model::{Health, Reason, ServiceKey};

/// What one spelling leads to.
pub(super) enum Answer {
    /// Addresses, and of which Service; a sentence says who answers.
    Known(Box<Resolved>, String, Step),
    /// It does not exist, or has no address.
    Nothing,
    /// Outside of what is known here.
    Elsewhere,
}

impl Names<'_> {
    /// What a spelling leads to, whoever answers it.
    pub(super) fn answer(&self, name: &str) -> Answer {
        let names = &self.evidence.settings.names;
        if let Some(inside) = inside(name, names.domain()) {
            return self.mesh_name(name, &inside);
        }
        if self.mesh_names_alone() {
            return Answer::Nothing;
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
            let object = object_of(service);
            let ips = list(&service.cluster_ips);
            let rule = format!("{name} is the name of {key}, with the addresses of its Service");
            step = step.because(&object, "spec.clusterIPs", ips, rule);
            if labels.len() == 1 {
                step = self.short_name(&key, step);
            }
        }
        Answer::Known(
            Box::new(Resolved { addresses, service: None, key: Some(key), by: Knows::Here }),
            says,
            step,
        )
    }

    /// Why a short name is whose it is.
    fn short_name(&self, owner: &ServiceKey, mut step: Step) -> Step {
        let others = self.evidence.projection.services.values().filter(|other| {
            other.key.name == owner.name && other.key != *owner && other.has_mesh_name()
        });
        for other in others {
            let object = object_of(other);
            let mut lost = self.evidence.on(&object);
            let lost = lost.find(|(finding, _)| finding.reason == Reason::LostShortName);
            if let Some((finding, time)) = lost {
                let since = since(time);
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
        let mut resolved =
            Resolved { addresses: ips, service: Some(service), key: None, by: Knows::Here };
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
                Box::new(resolved),
                says,
                step.because(object, "spec.clusterIP", "None", rule),
            );
        }
        if let Some(external) = external {
            let says = format!("is {object}; {who} the alias {external}");
            let rule = "an ExternalName Service has no address: its name stands for another one";
            return Answer::Known(
                Box::new(resolved),
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
            let mut ips: Vec<_> =
                pods.filter(|one| one.health != Health::Unready).map(|one| one.address).collect();
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
                Box::new(resolved),
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
        Answer::Known(
            Box::new(resolved),
            says,
            step.because(object, "spec.clusterIPs", found.clone(), rule),
        )
    }
}

/// The labels of a name before a domain; `None` for a name outside of it.
pub(super) fn inside<'n>(name: &'n str, domain: &str) -> Option<Vec<&'n str>> {
    let rest = name.strip_suffix(domain)?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    Some(rest.strip_suffix('.')?.split('.').collect())
}
