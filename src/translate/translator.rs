//! The translator: a pure function of the projection, with a memo of what it made last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::claims::Claims;
use super::cluster::{Marks, Tails};
use super::endpoints::Places;
use super::listeners::Listeners;
use super::part::Services;
use super::patch::Patch;
use super::proxies::{Form, Proxies};
use super::service::{self, Common, Made};
use super::tables::Tables;
use super::{Settings, routes};
use crate::model::{Finding, Findings, MeshService, Projection, ServiceKey, TrafficScope};
use crate::xds::{Group, Snapshot};

/// What a projection becomes.
#[derive(Debug, Clone)]
pub struct Translated {
    /// What is served. The very same one as before where nothing that a proxy sees has changed.
    pub snapshot: Arc<Snapshot>,
    /// What was left out since Envoy would refuse it; beside the projection's own findings.
    pub findings: Findings,
}

/// Translates projections, one after the other. The content of what it returns depends on the
/// projection alone; what it remembers only saves work, which is proportional to what changed.
#[derive(Debug)]
pub struct Translator {
    common: Common,
    /// The services of the last projection, and what was made of each.
    sources: OrdMap<ServiceKey, Arc<MeshService>>,
    services: Services,
    /// From where their endpoints are seen.
    places: Arc<Places>,
    claims: Claims,
    proxies: Proxies,
    tables: Tables,
    listeners: Listeners,
    findings: Findings,
    /// Those of them that are about proxies.
    of_proxies: Vec<Finding>,
    /// That of the last snapshot.
    generation: u64,
    snapshot: Option<Arc<Snapshot>>,
}

impl Translator {
    /// A translator that has not seen any projection.
    pub fn new(settings: Settings) -> Self {
        Self {
            sources: OrdMap::new(),
            services: BTreeMap::new(),
            places: Arc::default(),
            claims: Claims::default(),
            proxies: Proxies::default(),
            tables: Tables::new(settings.mode),
            listeners: Listeners::new(&settings),
            findings: Findings::default(),
            of_proxies: Vec::new(),
            generation: 0,
            snapshot: None,
            common: Common {
                settings,
                tails: Tails::new(),
                retries: routes::retries(),
                marks: None,
            },
        }
    }

    /// One that remembers nothing of projections, whose generations go on from this one's: for when a
    /// translation did not come to its end.
    pub fn anew(&self) -> Self {
        Self { generation: self.generation, ..Self::new(self.common.settings.clone()) }
    }

    /// The resources of a projection. An empty mesh is one too.
    pub fn translate(&mut self, projection: &Projection) -> Translated {
        let generation = self.generation + 1;
        let Settings { mode, dns, .. } = &self.common.settings;
        let form = Form { mode: *mode, dns: dns.is_some() };
        let proxies_changed = self.proxies.follow(projection, form);
        let patch = self.follow(projection);
        let (proxies, services) = (&self.proxies, &self.services);
        let tables_changed = self.tables.apply(generation, &patch, proxies, services);
        let settings = &self.common.settings;
        let stems_changed = self.listeners.follow(settings, &patch, proxies, services);
        if proxies_changed {
            let of_pods = self.proxies.unsound.values();
            let found = of_pods.chain(&self.proxies.of_nodes.findings).cloned().collect();
            let old = std::mem::replace(&mut self.of_proxies, found);
            self.findings.replace(&old, &self.of_proxies);
        }
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
        self.generation = snapshot.generation;
        self.snapshot = Some(snapshot.clone());
        self.sources = projection.services.clone();
        Translated { snapshot, findings: self.findings.clone() }
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
        // Who won or lost something is made anew too.
        for key in self.claims.concerned() {
            let made = self.services.get(&key);
            if made.is_some_and(|made| made.lost != self.claims.lost(&key)) {
                changed.insert(key);
            }
        }
        let mut patch = Patch::default();
        self.mark(&mut patch);
        self.see(&mut patch);
        for key in &changed {
            let service = projection.services.get(key);
            let made = service.map(|s| self.common.make(s, self.claims.lost(key), &self.places));
            let old = self.services.get(key);
            patch.replace(key, old, made.as_ref());
            let found = |made: Option<&Made>| made.map_or_else(Vec::new, |m| m.findings.clone());
            self.findings.replace(&found(old), &found(made.as_ref()));
            match made {
                Some(made) => self.services.insert(key.clone(), made),
                None => self.services.remove(key),
            };
        }
        patch
    }

    /// Gives the clusters a form for node proxies, once there are any, and from then on for good: the
    /// first node proxy is rarely the last.
    fn mark(&mut self, patch: &mut Patch) {
        if self.common.marks.is_none() && !self.proxies.of_nodes.callers.is_empty() {
            let marks = self.common.marks.insert(Marks::new());
            for made in self.services.values_mut() {
                made.mark(marks);
                patch.mark(made);
            }
        }
    }

    /// Makes the load assignments anew that look otherwise from where the proxies are now.
    fn see(&mut self, patch: &mut Patch) {
        let now = &self.proxies.lookouts.places;
        if Arc::ptr_eq(&self.places, now) {
            return;
        }
        let before = std::mem::replace(&mut self.places, now.clone());
        let same = |scope: &TrafficScope| before.same_for(&self.places, *scope);
        let scopes = [TrafficScope::Cluster, TrafficScope::PreferNode, TrafficScope::Node];
        let others: Vec<_> = scopes.into_iter().filter(|scope| !same(scope)).collect();
        if others.is_empty() {
            return;
        }
        for made in self.services.values_mut() {
            if others.contains(&made.source.scope) {
                made.see_from(&self.places);
                patch.see(made);
            }
        }
    }

    /// The keys of the services that are new, gone, or not what they were.
    fn changed(&self, now: &OrdMap<ServiceKey, Arc<MeshService>>) -> BTreeSet<ServiceKey> {
        let key = |item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => ServiceKey::clone(key),
            DiffItem::Update { new: (key, _), .. } => key.clone(),
        };
        self.sources.diff(now).map(key).collect()
    }
}
