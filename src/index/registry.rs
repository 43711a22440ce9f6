//! The registry, for the generator: made anew for the namespaces that have changed, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::facts::PodFacts;
use super::store::{Index, Name};
use crate::model::{Accounts, Generated, Protocol, Registry, Said, Workload};

/// What the index keeps for the registry alone.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// The ServiceAccounts.
    pub accounts: BTreeSet<Name>,
    /// The namespaces that are being deleted.
    pub closing: BTreeSet<Arc<str>>,
    /// The Services that were generated.
    pub generated: BTreeMap<Name, Generated>,
    /// The namespaces that must be looked at again.
    pub changed: BTreeSet<Arc<str>>,
    /// The last registry.
    last: Arc<Registry>,
    /// Whether there was one.
    made: bool,
}

impl Registered {
    /// A ServiceAccount is there, or is not.
    pub(super) fn account(&mut self, name: &Name, there: bool) {
        let news =
            if there { self.accounts.insert(name.clone()) } else { self.accounts.remove(name) };
        if news {
            self.changed.insert(name.0.clone());
        }
    }

    /// A namespace is being deleted, or is not.
    pub(super) fn namespace(&mut self, name: &Arc<str>, closing: bool) {
        let news =
            if closing { self.closing.insert(name.clone()) } else { self.closing.remove(name) };
        if news {
            self.changed.insert(name.clone());
        }
    }

    /// A Service is a generated one, or is not.
    pub(super) fn service(&mut self, name: &Name, generated: Option<Generated>) {
        if self.generated.get(name) == generated.as_ref() {
            return;
        }
        self.changed.insert(name.0.clone());
        match generated {
            Some(generated) => self.generated.insert(name.clone(), generated),
            None => self.generated.remove(name),
        };
    }
}

/// What has names in one namespace.
fn of<'a, V>(
    map: &'a BTreeMap<Name, V>,
    namespace: &'a Arc<str>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a V)> + use<'a, V> {
    let first = Included((namespace.clone(), Arc::from("")));
    let range = map.range((first, Unbounded));
    range.take_while(move |((of, _), _)| of == namespace).map(|((_, name), value)| (name, value))
}

impl Index {
    /// The registry as it is now; `None` where it is what it was when this was last asked.
    pub fn registry(&mut self) -> Option<Arc<Registry>> {
        let changed = std::mem::take(&mut self.registered.changed);
        if changed.is_empty() && self.registered.made {
            return None;
        }
        let mut registry = Registry::clone(&self.registered.last);
        for namespace in changed {
            let accounts = self.accounts(&namespace);
            if accounts.is_empty() || self.settings.never_touches(&namespace) {
                registry.namespaces.remove(&namespace);
            } else if registry.namespaces.get(&namespace).is_none_or(|old| **old != accounts) {
                registry.namespaces.insert(namespace, Arc::new(accounts));
            }
        }
        if std::mem::replace(&mut self.registered.made, true) && *self.registered.last == registry {
            return None;
        }
        self.registered.last = Arc::new(registry);
        Some(self.registered.last.clone())
    }

    fn accounts(&self, namespace: &Arc<str>) -> Accounts {
        let mut pods: Vec<&PodFacts> = of(&self.pods, namespace)
            .map(|(_, pod)| &**pod)
            .filter(|pod| pod.registered() && !pod.finished)
            .collect();
        pods.sort_by_key(|pod| (pod.created.unwrap_or(i64::MAX), &pod.object.name));
        let mut accounts = Accounts {
            closing: self.registered.closing.contains(namespace),
            generated: of(&self.registered.generated, namespace)
                .map(|(name, generated)| (name.clone(), generated.clone()))
                .collect(),
            ..Accounts::default()
        };
        let first = Included((namespace.clone(), Arc::from("")));
        let names = self.registered.accounts.range((first, Unbounded::<Name>));
        let names = names.take_while(|(of, _)| of == namespace);
        accounts.accounts = names.map(|(_, name)| name.clone()).collect();
        for pod in pods {
            accounts.present.insert(pod.service_account.clone());
            if !pod.running {
                continue;
            }
            match accounts.running.get_mut(&pod.service_account) {
                Some(workload) => hear(workload, pod),
                None => {
                    accounts.running.insert(pod.service_account.clone(), oldest(pod));
                }
            }
        }
        let services =
            self.services.range((Included((namespace.clone(), Arc::from(""))), Unbounded));
        for ((_, name), facts) in services.take_while(|((of, _), _)| of == namespace) {
            if !accounts.generated.contains_key(name) {
                accounts.claimed.entry(facts.mesh_name.clone()).or_insert_with(|| name.clone());
            }
        }
        accounts
    }
}

fn oldest(pod: &PodFacts) -> Workload {
    let by = &pod.object.name;
    Workload {
        port: Said { value: pod.port, by: by.clone(), otherwise: None },
        protocol: Said { value: pod.protocol.clone(), by: by.clone(), otherwise: None },
    }
}

/// Takes in what a younger pod says.
fn hear(workload: &mut Workload, pod: &PodFacts) {
    let protocol = |word: Option<&Arc<str>>| Protocol::from_word(word.map_or("", |word| word));
    if workload.port.value != pod.port && workload.port.otherwise.is_none() {
        workload.port.otherwise = Some((pod.object.name.clone(), pod.port));
    }
    let same = protocol(workload.protocol.value.as_ref()) == protocol(pod.protocol.as_ref());
    if !same && workload.protocol.otherwise.is_none() {
        workload.protocol.otherwise = Some((pod.object.name.clone(), pod.protocol.clone()));
    }
}
