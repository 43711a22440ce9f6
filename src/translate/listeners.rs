//! The tails of listeners, by who has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chains::{Chains, Leave};
use super::listener::{Fixed, Shared};
use super::part::{Services, within};
use super::patch::{Change, Patch};
use super::proxies::{DNS_STEM, Proxies};
use super::scope::{Caller, Scope};
use super::service::Made;
use super::{CaptureMode, Settings, dns};
use crate::model::{Records, ServiceKey};
use crate::xds::Stem;

/// Stems by the keys that proxies know.
pub(super) type Stems = BTreeMap<Arc<str>, Stem>;

/// The tails of the listeners of the last projection.
#[derive(Debug)]
pub(super) struct Listeners {
    fixed: Fixed,
    /// The same for node proxies.
    of_nodes: Fixed,
    mesh: OfPart,
    /// By the scope's words.
    scopes: BTreeMap<Arc<str>, OfPart>,
    /// All of them.
    pub stems: Stems,
}

/// What the listeners of a part of the mesh have in common.
#[derive(Debug)]
struct OfPart {
    capture: Shared,
    /// The same for node proxies, once there is a use for it.
    of_nodes: Option<Shared>,
    /// Whether the chains are other ones than before.
    fresh: bool,
    dns: Option<Stem>,
}

impl Listeners {
    /// Before any projection.
    pub(super) fn new(settings: &Settings) -> Self {
        let fixed = Fixed::new(settings, Leave::FromEnvoysNamespace);
        let of_nodes = Fixed::new(settings, Leave::FromListenersNamespace);
        let mesh = OfPart::new(&fixed, settings, None, &Services::new());
        Self { fixed, of_nodes, mesh, scopes: BTreeMap::new(), stems: BTreeMap::new() }
    }

    /// Makes what needs it. Tells whether any tail is another than before.
    pub(super) fn follow(
        &mut self,
        settings: &Settings,
        patch: &Patch,
        proxies: &Proxies,
        services: &Services,
    ) -> bool {
        self.mesh.follow(&self.fixed, settings, patch, None, services);
        let mut kept = std::mem::take(&mut self.scopes);
        for (words, scope) in &proxies.scopes {
            let part = if let Some(mut part) = kept.remove(words) {
                part.follow(&self.fixed, settings, patch, Some(scope), services);
                part
            } else {
                OfPart::new(&self.fixed, settings, Some(scope), services)
            };
            self.scopes.insert(words.clone(), part);
        }
        let mut stems = self.collect(proxies);
        if settings.mode == CaptureMode::RedirectAll {
            stems.append(&mut self.collect_of_nodes(proxies));
        }
        let same = self.stems.len() == stems.len()
            && self.stems.iter().zip(&stems).all(|(a, b)| a.0 == b.0 && a.1.version == b.1.version);
        self.stems = stems;
        !same
    }

    /// The tail of each caller, and those of the DNS listeners.
    fn collect(&self, proxies: &Proxies) -> Stems {
        let mut stems = Stems::new();
        for caller in proxies.callers.values() {
            let scope = caller.scope.as_ref();
            let part = scope.map_or(Some(&self.mesh), |scope| self.scopes.get(&scope.words));
            let Some(part) = part else { continue };
            stems.insert(caller.stem.clone(), part.stem(caller, &self.stems));
        }
        let of_scopes = proxies.scopes.iter().filter_map(|(words, scope)| {
            Some((scope.dns_stem.clone(), self.scopes.get(words)?.dns.clone()?))
        });
        stems.extend(of_scopes);
        stems.extend(self.mesh.dns.iter().map(|stem| (DNS_STEM.into(), stem.clone())));
        stems
    }

    /// The tails of the callers that node proxies serve.
    fn collect_of_nodes(&mut self, proxies: &Proxies) -> Stems {
        let mut stems = Stems::new();
        for caller in proxies.of_nodes.callers.iter().filter_map(|key| proxies.callers.get(key)) {
            let part = match &caller.scope {
                None => Some(&mut self.mesh),
                Some(scope) => self.scopes.get_mut(&scope.words),
            };
            let Some(part) = part else { continue };
            let stem = part.node_stem(&self.of_nodes, caller, &self.stems);
            stems.insert(caller.node_stem.clone(), stem);
        }
        stems
    }
}

impl OfPart {
    fn new(fixed: &Fixed, settings: &Settings, scope: Option<&Scope>, all: &Services) -> Self {
        let capture = Shared::new(fixed, chains(scope, all));
        Self { capture, of_nodes: None, fresh: true, dns: names(settings, scope, all) }
    }

    fn follow(
        &mut self,
        fixed: &Fixed,
        settings: &Settings,
        patch: &Patch,
        scope: Option<&Scope>,
        all: &Services,
    ) {
        let changes: Vec<(&ServiceKey, &Change)> = patch.within(scope);
        self.fresh = changes.iter().any(|(_, change)| change.chains);
        if self.fresh {
            self.capture = Shared::new(fixed, chains(scope, all));
            self.of_nodes = None;
        }
        if changes.iter().any(|(_, change)| change.names) {
            self.dns = names(settings, scope, all);
        }
    }

    fn stem(&self, caller: &Caller, old: &Stems) -> Stem {
        let kept = old.get(&caller.stem).filter(|_| !self.fresh);
        kept.cloned().unwrap_or_else(|| self.capture.stem(&caller.routes))
    }

    fn node_stem(&mut self, fixed: &Fixed, caller: &Caller, old: &Stems) -> Stem {
        let kept = old.get(&caller.node_stem).filter(|_| !self.fresh);
        kept.cloned().unwrap_or_else(|| {
            let of_nodes = self.of_nodes.get_or_insert_with(|| self.capture.with(fixed));
            of_nodes.stem(&caller.routes)
        })
    }
}

fn chains<'a>(scope: Option<&'a Scope>, all: &'a Services) -> impl Iterator<Item = &'a Chains> {
    within(scope, all).map(|made| &made.chains).filter(|chains| !chains.is_empty())
}

/// The names of the services that can be served.
fn names(settings: &Settings, scope: Option<&Scope>, all: &Services) -> Option<Stem> {
    let filter = settings.dns.as_ref()?;
    let records = Records::of(within(scope, all).filter_map(Made::named));
    Some(dns::stem(filter, &settings.names, &records))
}
