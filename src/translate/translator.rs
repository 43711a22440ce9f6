//! The translator: a pure function of the projection, with a memo of what it made last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Claims;
use super::cluster::{Marks, Tails};
use super::listeners::Listeners;
use super::part::Services;
use super::patch::Patch;
use super::proxies::{Form, Proxies};
use super::service::{self, Common, Lost};
use super::tables::Tables;
use super::{Settings, routes};
use crate::model::{Finding, MeshService, Projection, ServiceKey};
use crate::xds::{Group, Snapshot};

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
    services: Services,
    claims: Claims,
    proxies: Proxies,
    tables: Tables,
    listeners: Listeners,
    snapshot: Option<Arc<Snapshot>>,
}

impl Translator {
    /// A translator that has not seen any projection.
    pub fn new(settings: Settings) -> Self {
        Self {
            services: BTreeMap::new(),
            claims: Claims::default(),
            proxies: Proxies::default(),
            tables: Tables::new(settings.mode),
            listeners: Listeners::new(&settings),
            snapshot: None,
            common: Common {
                settings,
                tails: Tails::new(),
                retries: routes::retries(),
                marks: None,
            },
        }
    }

    /// The resources of a projection. An empty mesh is one too.
    pub fn translate(&mut self, projection: &Projection) -> Translated {
        let generation = self.snapshot.as_ref().map_or(1, |last| last.generation + 1);
        let Settings { mode, dns, .. } = &self.common.settings;
        let form = Form { mode: *mode, dns: dns.is_some() };
        let proxies_changed = self.proxies.follow(projection, form);
        let patch = self.follow(projection);
        let (proxies, services) = (&self.proxies, &self.services);
        let tables_changed = self.tables.apply(generation, &patch, proxies, services);
        let settings = &self.common.settings;
        let stems_changed = self.listeners.follow(settings, &patch, proxies, services);
        let mut findings: Vec<Finding> =
            self.services.values().flat_map(|made| made.findings.iter().cloned()).collect();
        findings.extend(self.proxies.findings.iter().cloned());
        findings.extend(self.proxies.of_nodes.findings.iter().cloned());
        findings.sort();
        let snapshot = match &self.snapshot {
            Some(last) if !(proxies_changed || tables_changed || stems_changed) => last.clone(),
            _ => Arc::new(Snapshot {
                generation,
                heard: 0,
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
    fn groups(&mut self) -> BTreeMap<Arc<str>, Arc<Group>> {
        let mut groups = self.tables.groups();
        self.proxies.of_nodes.add_groups(&mut groups);
        groups
    }

    /// Makes anew what changed of the services.
    fn follow(&mut self, projection: &Projection) -> Patch {
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
        let mut patch = Patch::default();
        if self.common.marks.is_none() && !self.proxies.of_nodes.callers.is_empty() {
            // From here on for good: the first node proxy is rarely the last.
            let marks = self.common.marks.insert(Marks::new());
            for made in self.services.values_mut() {
                made.mark(marks);
                patch.mark(made);
            }
        }
        for key in &changed {
            let lost: Lost = lost.remove(key).unwrap_or_default();
            let service = projection.services.get(key);
            let made = service.map(|s| self.common.make(s, lost, &self.proxies.places));
            patch.replace(key, self.services.get(key), made.as_ref());
            match made {
                Some(made) => self.services.insert(key.clone(), made),
                None => self.services.remove(key),
            };
        }
        for made in self.services.values_mut() {
            if !Arc::ptr_eq(&made.places, &self.proxies.places)
                && made.see_from(&self.proxies.places)
            {
                patch.see(made);
            }
        }
        patch
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
}
