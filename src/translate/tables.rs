//! The tables of the snapshot, by who sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::part::{Always, Part, Seen, Services};
use super::patch::Patch;
use super::proxies::Proxies;
use super::scope::{Caller, Scope};
use super::{CaptureMode, route_config};
use crate::xds::{Group, Kind, Layer, Table};

/// The tables as they are served.
#[derive(Debug)]
pub(super) struct Tables {
    always: Always,
    mesh: Part,
    /// By the scope's words.
    scopes: BTreeMap<Arc<str>, Part>,
    /// By group.
    callers: BTreeMap<Arc<str>, OfCaller>,
}

/// What a caller is served.
#[derive(Debug)]
struct OfCaller {
    seen: Seen,
    routes: Arc<Table>,
    group: Arc<Group>,
}

impl Tables {
    /// The tables of a mesh without services.
    pub(super) fn new(mode: CaptureMode) -> Self {
        let always = Always::new(mode);
        let mesh = Part::empty(&always);
        Self { always, mesh, scopes: BTreeMap::new(), callers: BTreeMap::new() }
    }

    /// Takes the changes in. Tells whether anything that a proxy sees is another than before.
    pub(super) fn apply(
        &mut self,
        generation: u64,
        patch: &Patch,
        proxies: &Proxies,
        services: &Services,
    ) -> bool {
        self.parts(generation, patch, proxies, services);
        let mut kept = std::mem::take(&mut self.callers);
        let mut changed = false;
        for (group, caller) in &proxies.callers {
            let part = match &caller.scope {
                None => Some(&self.mesh),
                Some(scope) => self.scopes.get(&scope.words),
            };
            let Some(seen) = part.and_then(|part| part.seen(&caller.namespace)) else { continue };
            let next = match kept.remove(group) {
                Some(old) if old.seen.is(&seen) => old,
                old => {
                    changed = true;
                    OfCaller::new(generation, caller, seen, old)
                }
            };
            self.callers.insert(group.clone(), next);
        }
        changed || !kept.is_empty()
    }

    /// Brings the parts up to date. A scope that nobody has any more goes; one that is new begins
    /// with what there is.
    fn parts(&mut self, generation: u64, patch: &Patch, proxies: &Proxies, services: &Services) {
        let mut namespaces: BTreeMap<Option<Arc<str>>, BTreeSet<Arc<str>>> = BTreeMap::new();
        for caller in proxies.callers.values() {
            let of = caller.scope.as_ref().map(|scope| scope.words.clone());
            namespaces.entry(of).or_default().insert(caller.namespace.clone());
        }
        let mut callers_of = |scope: Option<&Scope>| {
            let of = namespaces.remove(&scope.map(|scope| scope.words.clone()));
            of.unwrap_or_default().into_iter()
        };
        self.mesh.apply(generation, &patch.within(None));
        self.mesh.own_hosts(generation, callers_of(None), None, services);
        let mut kept = std::mem::take(&mut self.scopes);
        for (words, scope) in &proxies.scopes {
            let mut part = if let Some(mut part) = kept.remove(words) {
                part.apply(generation, &patch.within(Some(scope)));
                part
            } else {
                Part::of_scope(&self.always, generation, scope, services)
            };
            part.own_hosts(generation, callers_of(Some(scope)), Some(scope), services);
            self.scopes.insert(words.clone(), part);
        }
    }

    /// The groups by their keys.
    pub(super) fn groups(&self) -> BTreeMap<Arc<str>, Arc<Group>> {
        self.callers.iter().map(|(key, of)| (key.clone(), of.group.clone())).collect()
    }
}

impl OfCaller {
    fn new(generation: u64, caller: &Caller, seen: Seen, old: Option<Self>) -> Self {
        let routes = match old {
            Some(old) if old.seen.same_hosts(&seen) => old.routes,
            old => {
                let entries = route_config::of_caller(&caller.routes, &seen.own, &seen.hosts);
                match old {
                    Some(old) => old.routes.next(generation, entries),
                    None => Table::new(Kind::Routes, generation, entries),
                }
            }
        };
        let plain = |table: &Arc<Table>| Layer::plain(table.clone());
        let group = Group::new(BTreeMap::from([
            (Kind::Cluster, vec![plain(&seen.clusters)]),
            (Kind::Endpoints, vec![plain(&seen.assignments)]),
            (Kind::Routes, vec![plain(&routes), plain(&seen.all_routes)]),
            (Kind::VirtualHost, route_config::layers(&caller.routes, &seen.own, &seen.hosts)),
        ]));
        Self { seen, routes, group: Arc::new(group) }
    }
}
