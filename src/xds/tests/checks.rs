//! What the strict client makes of responses, and what it checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::order::route_configuration;
use super::super::{Kind, Protocol, Response, View};
use super::model::Model;
use super::world::NODE;
use super::worlds::Worlds;

/// Names and versions.
type Versions = BTreeMap<String, String>;

impl Model {
    /// Takes in a response, and returns the names of which another form came than it had.
    pub fn apply(&mut self, kind: Kind, response: &Response) -> BTreeSet<Arc<str>> {
        let tables: BTreeSet<_> =
            self.have.entry(Kind::Routes).or_default().keys().cloned().collect();
        let wanted = self.wanted.get(&kind).cloned().unwrap_or_default();
        let have = self.have.entry(kind).or_default();
        let before = have.clone();
        if self.protocol == Protocol::Sotw && kind.whole_state() {
            have.clear();
        }
        for resource in response.resources.iter() {
            let body = String::from_utf8(resource.body().to_bytes().to_vec()).unwrap();
            let name = resource.name();
            let known = match kind {
                Kind::VirtualHost => tables.contains(route_configuration(name)),
                Kind::Endpoints | Kind::Routes => wanted.contains(name.as_ref()),
                _ => true,
            };
            if known {
                have.insert(name.clone(), (body, resource.version().to_string()));
            }
        }
        for name in response.removed.iter() {
            have.remove(name);
        }
        let news = have.iter().filter(|(name, form)| before.get(*name) != Some(*form));
        let news: BTreeSet<_> = news.map(|(name, _)| name.clone()).collect();
        match kind {
            // One that goes is not awaited any more; one that is repeated as it was stays as warm
            // as it is.
            Kind::Cluster => {
                self.cold.retain(|name| have.contains_key(name));
                self.cold.extend(news.iter().cloned());
            }
            // Endpoints warm a cluster, whether or not they changed.
            Kind::Endpoints => {
                for resource in response.resources.iter() {
                    if have.contains_key(resource.name()) {
                        self.cold.remove(resource.name());
                    }
                }
            }
            Kind::Listener | Kind::Routes | Kind::VirtualHost => {}
        }
        news
    }

    /// Nothing that just came names a cluster that is new or changed and whose endpoints have not
    /// followed: an Envoy answers 503 for the one, and may serve an outdated other meanwhile.
    pub fn check_warm(&self, kind: Kind, news: &BTreeSet<Arc<str>>) {
        if !self.warm || matches!(kind, Kind::Cluster | Kind::Endpoints) {
            return;
        }
        for name in news {
            for cluster in words(&self.have[&kind][name].0, "clusters") {
                assert!(
                    !self.cold.contains(cluster.as_str()),
                    "{kind:?} {name}: {cluster} is not warm"
                );
            }
        }
    }

    /// Nothing that the client uses names what it does not have.
    pub fn check(&self) {
        if !self.strict {
            return;
        }
        let has =
            |kind: Kind, name: &str| self.have.get(&kind).is_some_and(|h| h.contains_key(name));
        for kind in [Kind::Listener, Kind::Routes, Kind::VirtualHost] {
            for (name, (body, _)) in self.have.get(&kind).into_iter().flatten() {
                for cluster in words(body, "clusters") {
                    assert!(has(Kind::Cluster, &cluster), "{kind:?} {name}: no cluster {cluster}");
                    assert!(
                        has(Kind::Endpoints, &cluster),
                        "{kind:?} {name}: no endpoints {cluster}"
                    );
                }
            }
        }
    }

    /// The client has what the view has, of all that it wants.
    pub fn converged(&self, worlds: &Worlds, seed: u64) {
        assert_eq!(self.unlike(worlds), None, "seed {seed}");
    }

    /// What of a type the client has, and what it should have, of the first type that differs.
    pub fn unlike(&self, worlds: &Worlds) -> Option<(Kind, Versions, Versions)> {
        let snapshot = self.snapshot.as_ref().unwrap();
        let view = View::new(snapshot, NODE, &self.protocol.lens().into()).unwrap();
        assert_eq!(view.generation(), worlds.world.generation);
        for kind in Kind::ALL {
            if self.protocol == Protocol::Sotw && kind == Kind::VirtualHost {
                continue;
            }
            let wanted = self.names(kind);
            let tables = self.names(Kind::Routes);
            let all = view.all(kind).into_iter().filter(|resource| match kind {
                Kind::Endpoints | Kind::Routes => wanted.contains(resource.name().as_ref()),
                Kind::VirtualHost => tables.contains(route_configuration(resource.name())),
                _ => true,
            });
            let should: BTreeMap<_, _> =
                all.map(|r| (r.name().to_string(), r.version().to_string())).collect();
            let have = self.have.get(&kind).into_iter().flatten();
            let has: BTreeMap<_, _> = have
                // In state-of-the-world nobody says that endpoints or routes are gone.
                .filter(|(name, _)| {
                    self.protocol == Protocol::Delta
                        || kind.whole_state()
                        || should.contains_key(name.as_ref())
                })
                .map(|(name, (_, version))| (name.to_string(), version.clone()))
                .collect();
            if has != should {
                return Some((kind, has, should));
            }
        }
        None
    }
}

/// The words of a key in a body.
pub fn words(body: &str, key: &str) -> BTreeSet<String> {
    let values = body.split(';').filter_map(|part| part.split_once('=')).filter(|(k, _)| *k == key);
    let names = values.flat_map(|(_, names)| names.split(',')).filter(|name| !name.is_empty());
    names.map(Into::into).collect()
}
