//! Who holds what: keys, short names and ClusterIPs that several Services claim.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::facts::ServiceFacts;
use super::store::Name;
use super::{Report, Settings};
use crate::model::{Finding, MeshNames, Reason, ServiceKey};

/// The order of claims: a user's before a generated one, one that bears the name as its own before
/// one renamed to it, then the older, then by name, then by namespace. The first holds the claim.
type Order<'a> = (bool, bool, i64, &'a str, &'a str);

fn order(facts: &ServiceFacts) -> Order<'_> {
    let renamed = facts.mesh_name != facts.object.name;
    let created = facts.created.unwrap_or(i64::MAX);
    (facts.generated, renamed, created, &facts.object.name, &facts.object.namespace)
}

/// Why one claim comes before another, in words.
fn why(winner: &ServiceFacts, loser: &ServiceFacts) -> &'static str {
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

/// A Service that holds its key.
#[derive(Debug, PartialEq)]
pub(super) struct Holder {
    pub facts: Arc<ServiceFacts>,
    pub owns_short_name: bool,
    pub owned_ips: Vec<IpAddr>,
}

impl Holder {
    /// The Service's own name.
    pub(super) fn name(&self) -> Name {
        (self.facts.object.namespace.clone(), self.facts.object.name.clone())
    }

    /// Whether the mesh has a name for it: headless and unallocated Services have none.
    fn has_mesh_name(&self) -> bool {
        !self.facts.headless && !self.facts.cluster_ips.is_empty()
    }

    fn report(&self) -> Report {
        Report::new(self.facts.object.clone(), self.facts.origin.clone())
    }
}

/// Settles every claim of the Services outside of the namespaces never touched.
pub(super) fn settle(
    services: &BTreeMap<Name, Arc<ServiceFacts>>,
    settings: &Settings,
    found: &mut Vec<Finding>,
) -> BTreeMap<ServiceKey, Holder> {
    let mut by_order = Vec::new();
    for facts in services.values() {
        if settings.never_touches(&facts.object.namespace) {
            found.extend(in_vain(facts));
        } else {
            by_order.push(facts);
        }
    }
    by_order.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut holders = keys(&by_order, found);
    let mut in_order: Vec<ServiceKey> = Vec::new();
    for facts in by_order {
        let key = key_of(facts);
        if holders.get(&key).is_some_and(|holder| Arc::ptr_eq(&holder.facts, facts)) {
            in_order.push(key);
        }
    }
    short_names(&in_order, &mut holders, &settings.names, found);
    addresses(&in_order, &mut holders, found);
    holders
}

/// A labelled Service where its label does nothing.
fn in_vain(facts: &ServiceFacts) -> Vec<Finding> {
    let namespace = &facts.object.namespace;
    let mut report = Report::new(facts.object.clone(), facts.origin.clone());
    report.warning(
        Reason::NotCaptured,
        "metadata.namespace",
        format!("the namespace {namespace} is never touched, so the Service is not captured"),
        "remove its label aether.io/mesh-service, or move it to another namespace",
    );
    report.into_findings()
}

fn key_of(facts: &ServiceFacts) -> ServiceKey {
    ServiceKey::new(facts.object.namespace.clone(), facts.mesh_name.clone())
}

fn keys(by_order: &[&Arc<ServiceFacts>], found: &mut Vec<Finding>) -> BTreeMap<ServiceKey, Holder> {
    let mut holders: BTreeMap<ServiceKey, Holder> = BTreeMap::new();
    for facts in by_order {
        let key = key_of(facts);
        if let Some(winner) = holders.get(&key) {
            let mut report = Report::new(facts.object.clone(), facts.origin.clone());
            report.problem(
                Reason::ConflictingKey,
                "metadata.annotations[aether.io/service]",
                format!(
                    "it claims the mesh name {key}, which {} holds, {}; so nothing of it is served",
                    winner.facts.object,
                    why(&winner.facts, facts)
                ),
                "give one of the two another name with the annotation aether.io/service",
            );
            found.extend(report.into_findings());
            continue;
        }
        let holder =
            Holder { facts: Arc::clone(facts), owns_short_name: false, owned_ips: Vec::new() };
        holders.insert(key, holder);
    }
    holders
}

fn short_names(
    in_order: &[ServiceKey],
    holders: &mut BTreeMap<ServiceKey, Holder>,
    names: &MeshNames,
    found: &mut Vec<Finding>,
) {
    let mut owners: HashMap<Arc<str>, Arc<ServiceFacts>> = HashMap::new();
    for key in in_order {
        let Some(holder) = holders.get_mut(key).filter(|holder| holder.has_mesh_name()) else {
            continue;
        };
        let Some(owner) = owners.get(&key.name) else {
            owners.insert(key.name.clone(), holder.facts.clone());
            holder.owns_short_name = true;
            continue;
        };
        let mut report = holder.report();
        report.problem(
            Reason::LostShortName,
            "metadata.annotations[aether.io/service]",
            format!(
                "the short name {} is that of {}, {}; this one is reached as {}",
                names.short(&key.name),
                owner.object,
                why(owner, &holder.facts),
                names.qualified(key)
            ),
            "use the qualified name, or give one of the two another name with the annotation aether.io/service",
        );
        found.extend(report.into_findings());
    }
}

fn addresses(
    in_order: &[ServiceKey],
    holders: &mut BTreeMap<ServiceKey, Holder>,
    found: &mut Vec<Finding>,
) {
    let mut owners: HashMap<IpAddr, Arc<ServiceFacts>> = HashMap::new();
    for key in in_order {
        let Some(holder) = holders.get_mut(key) else { continue };
        let mut report = holder.report();
        for ip in &holder.facts.cluster_ips {
            if let Some(owner) = owners.get(ip) {
                report.problem(
                    Reason::ConflictingAddress,
                    "spec.clusterIPs",
                    format!("{ip} is the ClusterIP of {} too, which comes first; so connections to it are not this Service's", owner.object),
                    "give each Service a ClusterIP of its own",
                );
                continue;
            }
            owners.insert(*ip, holder.facts.clone());
            holder.owned_ips.push(*ip);
        }
        found.extend(report.into_findings());
    }
}
