//! A client that subscribes as an Envoy does, and holds that nothing of what it uses is taken away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use prost::Message;

use crate::xds::{
    Kind, Protocol, Request, Resource, Response, Session, Snapshot, Versions, View, Wants,
};

/// What it has of a type.
type Have = BTreeMap<Arc<str>, Resource>;

/// A client with its stream, without a network.
pub(super) struct Client {
    protocol: Protocol,
    node: String,
    session: Session,
    now: Instant,
    have: BTreeMap<Kind, Have>,
    wanted: BTreeMap<Kind, BTreeSet<Arc<str>>>,
    nonces: BTreeMap<Kind, String>,
    down: VecDeque<Response>,
    /// Route configurations that have had all of their virtual hosts.
    complete: BTreeSet<Arc<str>>,
    /// How many responses it got.
    pub heard: usize,
}

impl Client {
    pub(super) fn new(protocol: Protocol, node: &str) -> Self {
        Self {
            protocol,
            node: node.to_owned(),
            session: Session::new(protocol, None, Arc::new(|_| Ok(()))),
            now: Instant::now(),
            have: BTreeMap::new(),
            wanted: BTreeMap::new(),
            nonces: BTreeMap::new(),
            down: VecDeque::new(),
            complete: BTreeSet::new(),
            heard: 0,
        }
    }

    /// Connects, again perhaps, with what it has.
    pub(super) fn connect(&mut self, snapshot: &Arc<Snapshot>) {
        self.session = Session::new(self.protocol, None, Arc::new(|_| Ok(())));
        self.session.snapshot(snapshot.clone());
        self.nonces.clear();
        self.down.clear();
        for kind in Kind::ALL {
            if self.protocol == Protocol::Delta || kind != Kind::VirtualHost {
                let names = self.wanted.get(&kind).cloned().unwrap_or_default();
                let have = self.have.get(&kind).into_iter().flatten();
                let initial = have.map(|(name, r)| (name.to_string(), r.version().to_string()));
                let initial = initial.collect();
                self.say(kind, self.wants(&names, &BTreeSet::new(), initial), None);
            }
        }
    }

    pub(super) fn publish(&mut self, snapshot: &Arc<Snapshot>) {
        self.session.snapshot(snapshot.clone());
        self.drive();
    }

    /// Takes in all that comes, until nothing does whatever time passes.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            if let Some(response) = self.down.pop_front() {
                self.receive(&response);
            } else if let Some(at) = self.session.deadline(self.now) {
                self.now = at;
                self.drive();
            } else {
                return;
            }
        }
        panic!("client and server go on for ever");
    }

    /// What was replaced is drained: route configurations that no listener names are dropped.
    pub(super) fn drain(&mut self) {
        let named = self.named(Kind::Routes);
        self.want(Kind::Routes, &named);
        self.settle();
    }

    /// Has exactly what the view has of what an Envoy asks for.
    pub(super) fn has_all_of(&self, view: &View) {
        for kind in Kind::ALL {
            let wanted = match kind {
                Kind::Cluster | Kind::Listener => view.names(kind),
                Kind::VirtualHost if self.protocol == Protocol::Sotw => continue,
                Kind::VirtualHost => {
                    let tables = self.named(Kind::Routes);
                    let of = |name: &Arc<str>| tables.contains(table(name));
                    view.names(kind).into_iter().filter(of).collect()
                }
                Kind::Endpoints | Kind::Routes => self.named(kind),
            };
            let should: BTreeMap<_, _> = wanted
                .into_iter()
                .map(|name| (name.clone(), view.version(kind, &name).unwrap()))
                .collect();
            let have = self.have.get(&kind).into_iter().flatten();
            let has: BTreeMap<_, _> = have.map(|(name, r)| (name.clone(), r.version())).collect();
            assert_eq!(has, should, "{:?} {kind:?}", self.protocol);
        }
    }

    /// What the resources that it has name.
    fn named(&self, kind: Kind) -> BTreeSet<Arc<str>> {
        let of = |kind| self.have.get(&kind).into_iter().flat_map(BTreeMap::values);
        match kind {
            Kind::Endpoints => {
                of(Kind::Cluster).filter_map(|cluster| cluster.needs().cloned()).collect()
            }
            _ => of(Kind::Listener).flat_map(routes_of).collect(),
        }
    }

    fn wants(
        &self,
        names: &BTreeSet<Arc<str>>,
        dropped: &BTreeSet<Arc<str>>,
        initial: Versions,
    ) -> Wants {
        let list = |names: &BTreeSet<Arc<str>>| names.iter().map(ToString::to_string).collect();
        match self.protocol {
            Protocol::Sotw => Wants::All(list(names)),
            Protocol::Delta => {
                Wants::Change { subscribe: list(names), unsubscribe: list(dropped), initial }
            }
        }
    }

    fn say(&mut self, kind: Kind, wants: Wants, nonce: Option<String>) {
        let request = Request {
            node: Some(self.node.clone()),
            type_url: kind.type_url().into(),
            nonce: nonce.unwrap_or_default(),
            wants,
            ..Request::default()
        };
        self.session.request(request, self.now).unwrap();
        self.drive();
    }

    fn drive(&mut self) {
        self.down.extend(self.session.drive(self.now));
    }

    fn want(&mut self, kind: Kind, names: &BTreeSet<Arc<str>>) {
        let before = self.wanted.insert(kind, names.clone()).unwrap_or_default();
        if before == *names {
            return;
        }
        let dropped: BTreeSet<_> = before.difference(names).cloned().collect();
        for name in &dropped {
            self.have.entry(kind).or_default().remove(name);
            if kind == Kind::Routes {
                self.complete.remove(name);
                let hosts = self.have.entry(Kind::VirtualHost).or_default();
                hosts.retain(|host, _| *table(host) != **name);
            }
        }
        let (wants, nonce) = match self.protocol {
            Protocol::Sotw => {
                (self.wants(names, &dropped, Versions::default()), self.nonces.get(&kind).cloned())
            }
            Protocol::Delta => {
                let added = names.difference(&before).cloned().collect();
                (self.wants(&added, &dropped, Versions::default()), None)
            }
        };
        self.say(kind, wants, nonce);
    }

    fn receive(&mut self, response: &Response) {
        let kind = response.kind.unwrap();
        self.heard += 1;
        self.nonces.insert(kind, response.nonce.to_string());
        let have = self.have.entry(kind).or_default();
        if self.protocol == Protocol::Sotw && kind.whole_state() {
            have.clear();
        }
        // Envoy keeps a route configuration that is said to be gone.
        for name in response.removed.iter().filter(|_| kind != Kind::Routes) {
            have.remove(name);
        }
        for resource in response.resources.iter() {
            have.insert(resource.name().clone(), resource.clone());
        }
        // The new subscriptions go before the answer, and what is replaced keeps its routes.
        let assignments = self.named(Kind::Endpoints);
        self.want(Kind::Endpoints, &assignments);
        let mut routes = self.wanted.get(&Kind::Routes).cloned().unwrap_or_default();
        routes.extend(self.named(Kind::Routes));
        self.want(Kind::Routes, &routes);
        let names = self.wanted.get(&kind).cloned().unwrap_or_default();
        let wants = match self.protocol {
            Protocol::Sotw => self.wants(&names, &BTreeSet::new(), Versions::default()),
            Protocol::Delta => self.wants(&BTreeSet::new(), &BTreeSet::new(), Versions::default()),
        };
        self.say(kind, wants, Some(response.nonce.to_string()));
        self.check();
    }

    /// Whatever is routed has a cluster, and a table that was complete stays so while it is used.
    fn check(&mut self) {
        let of = |kind| self.have.get(&kind).into_iter().flatten();
        let mut hosts: BTreeMap<&str, Vec<VirtualHost>> = BTreeMap::new();
        for (name, resource) in of(Kind::Routes) {
            let routes = RouteConfiguration::decode(resource.body().to_bytes()).unwrap();
            hosts.entry(name).or_default().extend(routes.virtual_hosts);
        }
        for (name, resource) in of(Kind::VirtualHost) {
            let host = VirtualHost::decode(resource.body().to_bytes()).unwrap();
            hosts.entry(table(name)).or_default().push(host);
        }
        let used = self.named(Kind::Routes);
        for (name, hosts) in hosts {
            // On a state-of-the-world stream nobody says what a table that is gone led to.
            if self.protocol == Protocol::Sotw && !used.contains(name) {
                continue;
            }
            let complete = hosts.iter().any(|host| host.name.ends_with("/any"));
            let before = self.complete.contains(name);
            assert!(complete || !before, "{name} lost its virtual hosts while it is used");
            if complete && self.wanted.get(&Kind::Routes).is_some_and(|w| w.contains(name)) {
                self.complete.insert(name.into());
            }
            for cluster in hosts.iter().flat_map(clusters_of) {
                let there =
                    self.have.get(&Kind::Cluster).is_some_and(|h| h.contains_key(&*cluster));
                assert!(there, "{:?}: {name} leads to {cluster}, which is gone", self.protocol);
            }
        }
    }
}

/// The route configuration of a virtual host.
fn table(host: &str) -> &str {
    host.rsplit_once('/').unwrap().0
}

/// The route configurations that a listener names.
fn routes_of(listener: &Resource) -> Vec<Arc<str>> {
    let listener = Listener::decode(listener.body().to_bytes()).unwrap();
    let filters = listener.filter_chains.iter().flat_map(|chain| &chain.filters);
    let managers = filters.filter_map(|filter| match &filter.config_type {
        Some(ConfigType::TypedConfig(any)) if any.type_url.ends_with("HttpConnectionManager") => {
            HttpConnectionManager::decode(any.value.as_slice()).ok()
        }
        _ => None,
    });
    let named = managers.filter_map(|manager| match manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) => Some(rds.route_config_name.into()),
        _ => None,
    });
    named.collect()
}

/// The clusters that a virtual host leads to.
fn clusters_of(host: &VirtualHost) -> Vec<String> {
    let actions = host.routes.iter().filter_map(|route| match route.action.as_ref()? {
        Action::Route(to) => to.cluster_specifier.clone(),
        _ => None,
    });
    let clusters = actions.filter_map(|cluster| match cluster {
        ClusterSpecifier::Cluster(cluster) => Some(cluster),
        _ => None,
    });
    clusters.collect()
}
