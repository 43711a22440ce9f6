//! A strict client: it subscribes as an Envoy does, and checks what it is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::order::route_configuration;
use super::super::{
    Kind, Protocol, Request, Resource, Response, Session, Snapshot, Versions, Wants, Words,
};
use super::checks::words;
use super::world::NODE;
use super::worlds::Worlds;
use crate::random::Random;

pub type Have = BTreeMap<Arc<str>, (String, String)>;

/// The client, and both directions of its stream.
pub struct Model {
    pub protocol: Protocol,
    pub strict: bool,
    /// Whether what names a cluster that is not warm is a fault.
    pub warm: bool,
    /// Clusters that came new or changed, and whose endpoints have not come since.
    pub cold: BTreeSet<Arc<str>>,
    pub session: Session,
    pub now: Instant,
    pub snapshot: Option<Arc<Snapshot>>,
    /// By type and name: body and version.
    pub have: BTreeMap<Kind, Have>,
    pub wanted: BTreeMap<Kind, BTreeSet<String>>,
    pub nonces: BTreeMap<Kind, String>,
    pub extra: BTreeSet<String>,
    pub down: VecDeque<Response>,
    pub up: VecDeque<Request>,
    pub named: bool,
}

impl Model {
    pub fn new(protocol: Protocol, strict: bool) -> Self {
        Self {
            protocol,
            strict,
            warm: strict,
            cold: BTreeSet::new(),
            session: Session::new(protocol, None, Arc::new(|_| Ok(()))),
            now: Instant::now(),
            snapshot: None,
            have: BTreeMap::new(),
            wanted: BTreeMap::new(),
            nonces: BTreeMap::new(),
            extra: BTreeSet::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            named: false,
        }
    }

    pub fn publish(&mut self, worlds: &mut Worlds) {
        let snapshot = worlds.world.snapshot();
        self.snapshot = Some(snapshot.clone());
        trace(&format!("snapshot {}", worlds.tell()));
        self.session.snapshot(snapshot);
        self.drive();
    }

    fn drive(&mut self) {
        let sent = self.session.drive(self.now);
        for response in &sent {
            trace(&format!("server: {:?}", super::rig::said(response)));
        }
        self.down.extend(sent);
        assert!(self.session.drive(self.now).is_empty(), "nothing is left to do at once");
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.drive();
    }

    /// Lets time pass until the session's deadline, if it has one.
    pub fn pass(&mut self) -> bool {
        let Some(at) = self.session.deadline(self.now) else { return false };
        assert!(at > self.now);
        self.now = at;
        self.drive();
        true
    }

    /// The first requests, all at once.
    pub fn connect(&mut self) {
        self.begin();
        while !self.up.is_empty() {
            self.deliver();
        }
    }

    /// Has its first requests ready, of every type.
    pub fn begin(&mut self) {
        for kind in Kind::ALL {
            if self.protocol == Protocol::Delta || kind != Kind::VirtualHost {
                self.want(kind, true);
            }
        }
    }

    /// Forgets what belonged to the stream that is gone, and nothing of what it has.
    pub fn cut(&mut self) {
        self.down.clear();
        self.up.clear();
        self.nonces.clear();
        self.wanted.clear();
        self.named = false;
        // A delta client that says it has the endpoints of a changed cluster gets them from nobody:
        // an Envoy ends that warming after 15 s with the ones it has, and serves the old one until
        // then. In state of the world all of them come again.
        if self.protocol == Protocol::Delta {
            let endpoints = self.have.entry(Kind::Endpoints).or_default();
            self.cold.retain(|name| !endpoints.contains_key(name));
        }
    }

    pub fn reconnect(&mut self) {
        self.session = Session::new(self.protocol, None, Arc::new(|_| Ok(())));
        self.cut();
        if let Some(snapshot) = &self.snapshot {
            self.session.snapshot(snapshot.clone());
        }
        self.connect();
    }

    /// What is wanted of a type by what the client has.
    pub fn names(&self, kind: Kind) -> BTreeSet<String> {
        let words = |from: Kind, key: &str| -> BTreeSet<String> {
            let bodies = self.have.get(&from).into_iter().flat_map(BTreeMap::values);
            bodies.flat_map(|(body, _)| words(body, key)).collect()
        };
        match kind {
            Kind::Endpoints => {
                let clusters = self.have.get(&Kind::Cluster).into_iter().flat_map(BTreeMap::keys);
                clusters.map(ToString::to_string).chain(self.extra.iter().cloned()).collect()
            }
            Kind::Routes => words(Kind::Listener, "routes"),
            _ => BTreeSet::new(),
        }
    }

    /// Subscribes to what is wanted now, if that is news.
    fn want(&mut self, kind: Kind, first: bool) {
        let names = self.names(kind);
        let before = self.wanted.insert(kind, names.clone()).unwrap_or_default();
        if !first && before == names {
            return;
        }
        let wants = match self.protocol {
            Protocol::Sotw => Wants::All(names.iter().collect()),
            Protocol::Delta => {
                let have = self.have.get(&kind).into_iter().flatten().filter(|_| first);
                Wants::Change {
                    subscribe: names.difference(&before).collect(),
                    unsubscribe: before.difference(&names).collect(),
                    initial: have.map(|(name, (_, version))| (name, version)).collect(),
                }
            }
        };
        // What is not wanted any more is dropped.
        let dropped: Vec<_> = before.difference(&names).cloned().collect();
        for name in dropped {
            self.have.entry(kind).or_default().remove(name.as_str());
            if kind == Kind::Routes {
                let hosts = self.have.entry(Kind::VirtualHost).or_default();
                hosts.retain(|host, _| route_configuration(host) != name);
            }
        }
        let nonce = match self.protocol {
            Protocol::Sotw => self.nonces.get(&kind).cloned().unwrap_or_default(),
            Protocol::Delta => String::new(),
        };
        self.say(Request { type_url: kind.type_url().into(), nonce, wants, ..Request::default() });
    }

    fn say(&mut self, mut request: Request) {
        if !std::mem::replace(&mut self.named, true) {
            request.node = Some(NODE.into());
        }
        self.up.push_back(request);
    }

    /// The next request arrives at the server.
    pub fn deliver(&mut self) {
        if let Some(request) = self.up.pop_front() {
            trace(&format!("request arrives: {request:?}"));
            self.session.request(request, self.now).unwrap();
            self.drive();
        }
    }

    /// The next response arrives at the client.
    pub fn receive(&mut self, refuse: bool) {
        let Some(response) = self.down.pop_front() else { return };
        let kind = response.kind.unwrap();
        trace(&format!(
            "client {}: {:?}",
            if refuse { "refuses" } else { "applies" },
            super::rig::said(&response)
        ));
        let names: BTreeSet<_> = response.resources.iter().map(Resource::name).collect();
        assert_eq!(names.len(), response.resources.len(), "no name twice");
        assert!(response.removed.iter().all(|name| !names.contains(name)));
        self.nonces.insert(kind, response.nonce.to_string());
        if !refuse {
            let news = self.apply(kind, &response);
            self.check();
            self.check_warm(kind, &news);
        }
        let wants = match self.protocol {
            Protocol::Sotw => Wants::All(self.wanted.get(&kind).into_iter().flatten().collect()),
            Protocol::Delta => Wants::Change {
                subscribe: Words::default(),
                unsubscribe: Words::default(),
                initial: Versions::default(),
            },
        };
        let (type_url, nonce) = (kind.type_url().into(), response.nonce.to_string());
        let error = refuse.then(|| "no".to_string());
        self.say(Request { type_url, nonce, error, wants, ..Request::default() });
        self.want(Kind::Endpoints, false);
        self.want(Kind::Routes, false);
    }

    /// Wants or stops wanting endpoints that nothing needs.
    pub fn toggle(&mut self, random: &mut Random) {
        let name = format!("c{}", random.below(8));
        if !self.extra.remove(&name) {
            self.extra.insert(name);
        }
        self.want(Kind::Endpoints, false);
    }

    /// Everything that is under way arrives.
    pub fn settle(&mut self) {
        for _ in 0..1000 {
            if self.down.is_empty() && self.up.is_empty() {
                return;
            }
            self.receive(false);
            self.deliver();
        }
        panic!("client and server go on for ever");
    }
}

/// Prints what happens, to look at one run.
fn trace(line: &str) {
    if std::env::var_os("AETHER_XDS_TRACE").is_some() {
        eprintln!("{line}");
    }
}
