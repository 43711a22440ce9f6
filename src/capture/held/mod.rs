//! What a canary refused is held back: the last accepted form stays served until the Service is
//! changed again. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::model::{
    Finding, MeshService, ObjectRef, Projection, Reason, ServiceKey, Severity, quoted,
};

/// Services by key, as in a projection.
pub type Services = OrdMap<ServiceKey, Arc<MeshService>>;

/// What was refused of which Services, and what is served instead.
#[derive(Debug, Default)]
pub struct Held {
    accepted: Arc<Projection>,
    holds: BTreeMap<ServiceKey, Hold>,
}

#[derive(Debug)]
struct Hold {
    /// What was refused; `None`: that it was gone.
    refused: Option<Arc<MeshService>>,
    /// What is served instead; `None`: nothing.
    accepted: Option<Arc<MeshService>>,
    finding: Finding,
}

/// A refusal, in the words of whoever refused.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a> {
    /// The node id of the proxy.
    pub node: &'a str,
    /// What it said.
    pub words: &'a str,
    /// When, for people to read.
    pub at: &'a str,
}

impl Held {
    /// Notes what is served to all.
    pub fn released(&mut self, projection: &Arc<Projection>) {
        self.accepted = projection.clone();
    }

    /// Holds back what the refused snapshot brought: of the Services that differ from what is
    /// served to all, those that `blamed` says are named by the refusal, or all where it names
    /// none. Returns their keys; none where no Service differs.
    pub fn refused(
        &mut self,
        tried: &Services,
        refused: Refused<'_>,
        blamed: impl Fn(&MeshService) -> bool,
    ) -> Vec<ServiceKey> {
        let changed = self.changed(tried);
        let named = |key: &&ServiceKey| {
            [tried.get(*key), self.accepted.services.get(*key)]
                .into_iter()
                .flatten()
                .any(|s| blamed(s))
        };
        let mut keys: Vec<ServiceKey> = changed.iter().filter(named).cloned().collect();
        if keys.is_empty() {
            keys = changed;
        }
        for key in &keys {
            let (new, old) = (tried.get(key).cloned(), self.accepted.services.get(key).cloned());
            let Some(object) = new.as_ref().or(old.as_ref()) else { continue };
            let finding = finding(object, old.is_some(), refused);
            self.holds.insert(key.clone(), Hold { refused: new, accepted: old, finding });
        }
        keys
    }

    /// Puts what was accepted in the place of what was refused, as long as that is what the
    /// objects say. Endpoints come and go all the same: a Service that is held must not go on
    /// sending to pods that are gone.
    pub fn apply(&mut self, services: &mut Services) {
        self.holds.retain(|key, hold| {
            let now = services.get(key);
            let same = match (now, &hold.refused) {
                (Some(now), Some(refused)) => without_endpoints(now) == without_endpoints(refused),
                (None, None) => true,
                _ => false,
            };
            if same {
                match &hold.accepted {
                    Some(accepted) => {
                        let form =
                            now.map_or_else(|| accepted.clone(), |now| merged(accepted, now));
                        services.insert(key.clone(), form);
                    }
                    None => {
                        services.remove(key);
                    }
                }
            }
            same
        });
    }

    /// What is wrong, for the objects at fault.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.holds.values().map(|hold| &hold.finding)
    }

    /// The keys under which what was tried is not what is served to all.
    fn changed(&self, tried: &Services) -> Vec<ServiceKey> {
        let key = |item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => ServiceKey::clone(key),
            DiffItem::Update { new: (key, _), .. } => key.clone(),
        };
        self.accepted.services.diff(tried).map(key).collect()
    }
}

fn without_endpoints(service: &MeshService) -> MeshService {
    let mut service = service.clone();
    service.ports.iter_mut().for_each(|port| port.endpoints.clear());
    service
}

/// The accepted form with the endpoints of now, for the ports that both have.
fn merged(accepted: &Arc<MeshService>, now: &MeshService) -> Arc<MeshService> {
    let mut form = MeshService::clone(accepted);
    for port in &mut form.ports {
        if let Some(now) = now.port(port.number) {
            port.endpoints.clone_from(&now.endpoints);
        }
    }
    if form == **accepted { accepted.clone() } else { Arc::new(form) }
}

fn finding(service: &MeshService, served: bool, refused: Refused<'_>) -> Finding {
    let Refused { node, words, at } = refused;
    let follows = if served {
        "so that its last accepted form stays served"
    } else {
        "so that nothing of it is served"
    };
    Finding {
        object: ObjectRef::new("Service", service.key.namespace.clone(), service.service.clone()),
        severity: Severity::Problem,
        reason: Reason::HeldBack,
        origin: None,
        field: String::new(),
        message: format!(
            "the proxy {node}, which was asked first, refused what came of it at {at} ({}), {follows}",
            quoted(words)
        ),
        way_out: "change the Service, and it is tried again at once; where the proxies are to be changed, restart the control plane after".to_owned(),
    }
}
