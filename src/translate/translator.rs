//! The translator: a pure function of the projection, with a memo of what it made last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::chains::Leave;
use super::claims::Claims;
use super::cluster::{self, Marks, Tails};
use super::listener::Shared;
use super::proxies::{DNS_STEM, Form, Proxies};
use super::service::{self, Common, Lost, Made};
use super::tables::{Patch, Tables};
use super::{CaptureMode, Settings, dns, naming, routes};
use crate::model::{Finding, MeshService, Projection, Records, ServiceKey};
use crate::xds::{Group, Resource, Snapshot, Stem};

/// What a projection becomes.
#[derive(Debug, Clone)]
pub struct Translated {
    /// What is served. The very same one as before where nothing that a proxy sees has changed.
    pub snapshot: Arc<Snapshot>,
    /// What was left out since Envoy would refuse it, sorted; beside the projection's own findings.
    pub findings: Vec<Finding>,
}

/// Translates projections, one after the other. The content of what it returns depends on the
/// projection alone; what it remembers only saves work, which is proportional to what changed.
#[derive(Debug)]
pub struct Translator {
    common: Common,
    services: BTreeMap<ServiceKey, Made>,
    claims: Claims,
    proxies: Proxies,
    tables: Tables,
    listeners: Listeners,
    /// The cluster of what passes through, where anything does.
    passthrough: Option<Resource>,
    marks: Option<Arc<Marks>>,
    snapshot: Option<Arc<Snapshot>>,
}

/// The tails of listeners.
#[derive(Debug)]
struct Listeners {
    fixed: Bytes,
    shared: Shared,
    /// The same for node proxies, once there is a use for it.
    of_nodes: Option<Shared>,
    stems: BTreeMap<Arc<str>, Stem>,
}

impl Listeners {
    /// The tail of the listeners of a namespace on node proxies.
    fn of_node(&mut self, settings: &Settings, namespace: &str) -> Stem {
        let shared = &self.shared;
        let of_nodes = self.of_nodes.get_or_insert_with(|| {
            shared.of_own_namespaces(Shared::fixed(settings, Leave::FromListenersNamespace))
        });
        of_nodes.stem(namespace)
    }
}

impl Translator {
    /// A translator that has not seen any projection.
    pub fn new(settings: Settings) -> Self {
        let fixed = Shared::fixed(&settings, Leave::FromEnvoysNamespace);
        let redirects = settings.mode == CaptureMode::RedirectAll;
        let passthrough = redirects.then(cluster::passthrough);
        let shared = Shared::new(fixed.clone(), settings.mode, std::iter::empty());
        Self {
            services: BTreeMap::new(),
            claims: Claims::default(),
            proxies: Proxies::default(),
            tables: Tables::new(settings.mode, passthrough.as_ref()),
            passthrough,
            marks: None,
            listeners: Listeners { fixed, shared, of_nodes: None, stems: BTreeMap::new() },
            snapshot: None,
            common: Common { settings, tails: Tails::new(), retries: routes::retries() },
        }
    }

    /// The resources of a projection. An empty mesh is one too.
    pub fn translate(&mut self, projection: &Projection) -> Translated {
        let generation = self.snapshot.as_ref().map_or(1, |last| last.generation + 1);
        let Settings { mode, dns, .. } = &self.common.settings;
        let form = Form { mode: *mode, dns: dns.is_some() };
        let proxies_changed = self.proxies.follow(projection, form);
        let patch = self.follow(projection);
        let chains_changed = patch.as_ref().is_some_and(|patch| patch.chains);
        let services_changed = patch.is_some();
        let namespaces = &self.proxies.namespaces;
        let patch = patch.unwrap_or_default();
        let tables_changed = self.tables.apply(generation, patch, namespaces, &self.services);
        let stems_changed = self.stems(projection, services_changed, chains_changed);
        let mut findings: Vec<Finding> =
            self.services.values().flat_map(|made| made.findings.iter().cloned()).collect();
        findings.extend(self.proxies.findings.iter().cloned());
        findings.extend(self.proxies.of_nodes.findings.iter().cloned());
        findings.sort();
        let snapshot = match &self.snapshot {
            Some(last) if !(proxies_changed || tables_changed || stems_changed) => last.clone(),
            _ => Arc::new(Snapshot {
                generation,
                nodes: self.proxies.nodes.clone(),
                groups: self.groups(),
                stems: self.listeners.stems.clone(),
                origin: None,
            }),
        };
        self.snapshot = Some(snapshot.clone());
        Translated { snapshot, findings }
    }

    /// The groups of sidecars, and those of node proxies made of them.
    fn groups(&self) -> BTreeMap<Arc<str>, Arc<Group>> {
        let mut groups = self.tables.groups();
        self.proxies.of_nodes.add_groups(&mut groups);
        groups
    }

    /// Makes anew what changed of the services; `None` where nothing did.
    fn follow(&mut self, projection: &Projection) -> Option<Patch> {
        let mut changed = self.changed(&projection.services);
        for key in &changed {
            let service = projection.services.get(key);
            let claims = service.map(|service| service::claims(&self.common.settings, service));
            self.claims.set(key, claims.unwrap_or_else(|| Arc::new([])));
        }
        let mut lost = self.claims.lost();
        // Who won or lost something is made anew too.
        let before = self.services.values().filter(|made| {
            let now = lost.get(&made.source.key);
            now.map_or(!made.lost.is_empty(), |now| *now != made.lost)
        });
        changed.extend(before.map(|made| made.source.key.clone()));
        let first_marked = self.marks.is_none() && !self.proxies.of_nodes.namespaces.is_empty();
        if first_marked {
            // From here on for good: the first node proxy is rarely the last.
            self.marks = Some(Arc::new(Marks::new()));
        }
        let mut patch = Patch::new(self.marks.clone());
        if first_marked {
            let passthrough = self.passthrough.iter();
            patch.mark(self.services.values().flat_map(|made| &made.clusters).chain(passthrough));
        }
        for key in &changed {
            let lost: Lost = lost.remove(key).unwrap_or_default();
            let service = projection.services.get(key);
            let made = service.map(|s| self.common.make(s, lost, &self.proxies.places));
            patch.replace(self.services.get(key), made.as_ref());
            match made {
                Some(made) => self.services.insert(key.clone(), made),
                None => self.services.remove(key),
            };
        }
        let mut seen_anew = false;
        for made in self.services.values_mut() {
            if !Arc::ptr_eq(&made.places, &self.proxies.places)
                && made.see_from(&self.proxies.places)
            {
                seen_anew = true;
                patch.see(made);
            }
        }
        (seen_anew || first_marked || !changed.is_empty()).then_some(patch)
    }

    /// The keys of the services that are new, gone, or not what they were.
    fn changed(&self, now: &BTreeMap<ServiceKey, Arc<MeshService>>) -> BTreeSet<ServiceKey> {
        let differs = |key: &ServiceKey, service: &Arc<MeshService>| {
            let old = self.services.get(key).map(|made| &made.source);
            !old.is_some_and(|old| Arc::ptr_eq(old, service) || old == service)
        };
        let new = now.iter().filter(|(key, service)| differs(key, service)).map(|(key, _)| key);
        let gone = self.services.keys().filter(|key| !now.contains_key(*key));
        new.chain(gone).cloned().collect()
    }

    /// The records of the services that can be served: one wrong name would cost the listener.
    fn records(&self, projection: &Projection) -> Records {
        let mut records = projection.records();
        let wrong = self.services.iter().filter(|(_, made)| made.quarantined);
        for (key, _) in wrong {
            records.v4.remove(key);
            records.v6.remove(key);
            records.short.retain(|_, owner| owner != key);
        }
        records
    }

    /// Makes the tails of the listeners that need it. Tells whether any is another than before.
    fn stems(&mut self, projection: &Projection, services: bool, chains: bool) -> bool {
        let settings = &self.common.settings;
        let mode = settings.mode;
        if chains {
            let chains = self.services.values().map(|made| &made.chains);
            let chains = chains.filter(|chains| !chains.is_empty());
            self.listeners.shared = Shared::new(self.listeners.fixed.clone(), mode, chains);
            self.listeners.of_nodes = None;
        }
        let old = std::mem::take(&mut self.listeners.stems);
        let mut stems = BTreeMap::new();
        for namespace in &self.proxies.namespaces {
            let key = naming::stem_of(namespace);
            let kept = old.get(&key).filter(|_| !chains).cloned();
            let stem = kept.unwrap_or_else(|| self.listeners.shared.stem(namespace));
            stems.insert(key, stem);
        }
        if mode == CaptureMode::RedirectAll {
            for namespace in &self.proxies.of_nodes.namespaces {
                let key = naming::node_stem_of(namespace);
                let kept = old.get(&key).filter(|_| !chains).cloned();
                let stem = kept.unwrap_or_else(|| self.listeners.of_node(settings, namespace));
                stems.insert(key, stem);
            }
        }
        if let Some(filter) = &self.common.settings.dns {
            let kept = old.get(DNS_STEM).filter(|_| !services).cloned();
            let names = &self.common.settings.names;
            let stem = kept.unwrap_or_else(|| dns::stem(filter, names, &self.records(projection)));
            stems.insert(DNS_STEM.into(), stem);
        }
        let same = old.len() == stems.len()
            && old.iter().zip(&stems).all(|(a, b)| a.0 == b.0 && a.1.version == b.1.version);
        self.listeners.stems = stems;
        !same
    }
}
