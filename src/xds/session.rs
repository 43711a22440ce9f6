//! A stream as a state machine: requests, snapshots and time in, responses out.
//!
//! Nothing here waits, reads a clock or touches a socket; what is sent next is a pure decision.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::flight::Flight;
use super::order::{Order, route_configuration};
use super::request::{Protocol, Request, Wants};
use super::response::{PART, Response, parts};
use super::subscription::{Bundle, Subscription};
use super::{Kind, Lens, Resource, Snapshot, Version, View};

/// The subscriptions of a stream.
pub(super) type Subscriptions = BTreeMap<Kind, Subscription>;

/// Types that are not served and were asked for before there was anything to answer with.
const STRANGERS: usize = 16;

/// How often the types are gone through at a time. Each can make another one due, once.
const PASSES: usize = 4;

/// Why a stream ends. All of them are the client's to mend (InvalidArgument).
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// Statement 3.
    #[error("the first request has no node: set node.id in the Envoy bootstrap")]
    NoNode,
    /// A node id that is refused, with the reason.
    #[error("node.id {id:?} is refused: {reason}")]
    Node {
        /// The id.
        id: String,
        /// Why, and what would be accepted.
        reason: String,
    },
    /// One stream speaks for one node.
    #[error("the stream began as node {was:?} and now says {now:?}: open a stream for each node")]
    OtherNode {
        /// The id in the first request.
        was: String,
        /// The id in this one.
        now: String,
    },
    /// Statement 2.
    #[error("type_url is empty: on the aggregated service every request names its type")]
    NoType,
}

/// A response that the client refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type.
    pub kind: Kind,
    /// The client's words.
    pub words: String,
    /// The names of that response that stand in these words.
    pub names: Vec<String>,
    /// Whether it said the very same at its last refusal of this type.
    pub repeated: bool,
}

/// What a request was, for the counters and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A subscription, an acknowledgement, or both.
    Fine,
    /// A refusal.
    Refused(Refusal),
    /// A type that is not served on this stream.
    Unknown,
}

/// Decides whether a node id may connect; the error says why not, and what may.
pub type Admit = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// One stream.
pub struct Session {
    protocol: Protocol,
    lens: Lens,
    /// The one type of a per-type service.
    only: Option<Kind>,
    admit: Admit,
    node: Option<Arc<str>>,
    newest: Option<Arc<Snapshot>>,
    view: Option<View>,
    subs: Subscriptions,
    order: Order,
    nonce: u64,
    strangers: BTreeMap<String, Vec<Arc<str>>>,
}

impl Session {
    /// A stream of the aggregated service, or of the service of one type.
    pub fn new(protocol: Protocol, only: Option<Kind>, admit: Admit) -> Self {
        Self {
            protocol,
            lens: protocol.lens().into(),
            only,
            admit,
            node: None,
            newest: None,
            view: None,
            subs: BTreeMap::new(),
            order: Order::default(),
            nonce: 0,
            strangers: BTreeMap::new(),
        }
    }

    /// The node's id, once it is known.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Whether the node has a view: one without waits, in silence.
    pub fn served(&self) -> bool {
        self.view.is_some()
    }

    /// Takes in a newer snapshot.
    pub fn snapshot(&mut self, snapshot: Arc<Snapshot>) {
        self.newest = Some(snapshot);
    }

    /// Takes in a request.
    pub fn request(&mut self, request: Request, now: Instant) -> Result<Heard, Fault> {
        self.identify(request.node)?;
        let kind = match (request.type_url.as_str(), self.only) {
            ("", Some(only)) => Some(only),
            ("", None) => return Err(Fault::NoType),
            (url, only) => Kind::from_type_url(url)
                .filter(|kind| only.is_none_or(|only| only == *kind))
                .filter(|kind| self.protocol == Protocol::Delta || *kind != Kind::VirtualHost),
        };
        let Some(kind) = kind else {
            self.stranger(request.type_url, request.wants);
            return Ok(Heard::Unknown);
        };
        self.adopt(now);
        let first = !self.subs.contains_key(&kind);
        let nonce = Nonce::parse(&request.nonce);
        let heard = match request.error {
            Some(words) if !first => self.refused(nonce, words),
            _ => {
                self.accepted(nonce);
                Heard::Fine
            }
        };
        match request.wants {
            Wants::All(names) => self.want_all(kind, nonce, &names),
            Wants::Change { subscribe, unsubscribe, initial } => match self.subs.get_mut(&kind) {
                Some(sub) => sub.change_delta(&subscribe, &unsubscribe),
                None => {
                    if !initial.is_empty() && self.only.is_none() {
                        self.order.resumed.get_or_insert(now);
                    }
                    let sub = Subscription::first_delta(kind, &subscribe, &unsubscribe, initial);
                    self.subscribe(sub);
                }
            },
        }
        if kind == Kind::Endpoints {
            self.order.endpoints_asked(&mut self.subs, now);
        }
        Ok(heard)
    }

    fn identify(&mut self, node: Option<String>) -> Result<(), Fault> {
        match (&self.node, node) {
            (None, None) => Err(Fault::NoNode),
            (None, Some(id)) => {
                (self.admit)(&id).map_err(|reason| Fault::Node { id: id.clone(), reason })?;
                self.node = Some(id.into());
                Ok(())
            }
            // An Envoy leaves the node out later, or repeats it; an empty one says nothing.
            (Some(was), Some(now)) if !now.is_empty() && **was != *now => {
                Err(Fault::OtherNode { was: was.to_string(), now })
            }
            (Some(_), _) => Ok(()),
        }
    }

    fn stranger(&mut self, url: String, wants: Wants) {
        let known = self.strangers.contains_key(&url) || self.strangers.len() < STRANGERS;
        let Wants::Change { subscribe, .. } = wants else { return };
        let names: Vec<Arc<str>> =
            subscribe.iter().filter(|name| *name != "*").map(|name| name.as_str().into()).collect();
        if known && !names.is_empty() {
            let all = self.strangers.entry(url).or_default();
            all.extend(names);
            all.sort();
            all.dedup();
        }
    }

    /// The response that a request answers, and the subscription that it belongs to. Nonces are
    /// unique on the stream, so that an answer under another type's URL finds it too (statement 7).
    fn land(&mut self, nonce: Nonce) -> Option<(Flight, &mut Subscription)> {
        let Nonce::Of(nonce) = nonce else { return None };
        self.subs.values_mut().find_map(|sub| Some((sub.flights.land(nonce)?, sub)))
    }

    fn accepted(&mut self, nonce: Nonce) {
        if let Some((_, sub)) = self.land(nonce) {
            sub.refusal = None;
        }
    }

    fn refused(&mut self, nonce: Nonce, words: String) -> Heard {
        let Some((flight, sub)) = self.land(nonce) else { return Heard::Fine };
        let kind = sub.kind;
        let repeated = sub.refusal.as_ref() == Some(&words);
        let all = flight.resources.iter().map(Resource::name).chain(flight.removed.iter());
        let named = all.filter(|name| !name.is_empty() && words.contains(name.as_ref()));
        let names = named.map(ToString::to_string).collect();
        sub.refuse(&flight, words.clone());
        Heard::Refused(Refusal { kind, words, names, repeated })
    }

    fn want_all(&mut self, kind: Kind, nonce: Nonce, names: &[String]) {
        match self.subs.get_mut(&kind) {
            None => {
                let mut sub = Subscription::new(kind, Protocol::Sotw);
                sub.name_sotw(names, true);
                self.subscribe(sub);
            }
            // A nonce of another stream, or of another type, or of a response that was overtaken:
            // the request is stale (statement 7).
            Some(sub) => match nonce {
                Nonce::None => sub.name_sotw(names, false),
                Nonce::Of(nonce) if nonce == sub.flights.last() => sub.name_sotw(names, false),
                Nonce::Of(_) | Nonce::Foreign if sub.flights.last() == 0 => {
                    sub.name_sotw(names, false);
                }
                Nonce::Of(_) | Nonce::Foreign => {}
            },
        }
    }

    fn subscribe(&mut self, mut sub: Subscription) {
        if let Some(view) = &self.view {
            sub.refresh(view);
        }
        self.subs.insert(sub.kind, sub);
    }

    /// Makes the newest snapshot the one that is sent from, unless what is held back needs its
    /// turn first. A node that it does not know keeps what it has.
    fn adopt(&mut self, now: Instant) {
        let (Some(newest), Some(node)) = (&self.newest, &self.node) else { return };
        let seen = self.view.as_ref().is_some_and(|view| view.generation() >= newest.generation);
        if seen || self.order.frozen(now) {
            return;
        }
        if let Some(view) = View::new(newest, node, &self.lens) {
            self.subs.values_mut().for_each(|sub| sub.refresh(&view));
            self.view = Some(view);
        }
    }

    /// All that is to be sent now, in order. Empty: nothing before the next request, the next
    /// snapshot or the [`deadline`](Self::deadline).
    pub fn drive(&mut self, now: Instant) -> Vec<Response> {
        let mut out = Vec::new();
        // What was sent may let something else go; a snapshot that had to wait may be taken in.
        for _ in 0..PASSES {
            self.adopt(now);
            let Some(view) = self.view.clone() else { return out };
            for (url, removed) in std::mem::take(&mut self.strangers) {
                let version = view.generation().to_string();
                out.push(self.response(None, url.into(), version, Arc::default(), removed.into()));
            }
            self.order.expire(&view, now);
            let mut moved = false;
            for kind in Kind::ALL {
                moved |= self.send(kind, &view, now, &mut out);
            }
            self.order.note(&self.subs, now);
            if !moved {
                break;
            }
        }
        out
    }

    /// Sends what is to be sent of a type; whether anything was to be.
    fn send(&mut self, kind: Kind, view: &View, now: Instant, out: &mut Vec<Response>) -> bool {
        if !self.order.open(kind, &self.subs) {
            return false;
        }
        let removals = self.order.removals(kind, &self.subs, now);
        let Some(mut sub) = self.subs.remove(&kind) else { return false };
        let ready = sub.ready(removals, now);
        let bundle = if ready { self.take(&mut sub, removals) } else { None };
        if let Some(bundle) = &bundle {
            self.respond(&mut sub, bundle, view, now, out);
        }
        self.subs.insert(kind, sub);
        if let Some(bundle) = bundle {
            self.order.sent(kind, &bundle, &mut self.subs, view, now);
        }
        ready
    }

    fn take(&self, sub: &mut Subscription, removals: bool) -> Option<Bundle> {
        if self.protocol == Protocol::Sotw {
            return sub.take_sotw(removals);
        }
        let routes = self.subs.get(&Kind::Routes).filter(|_| sub.kind == Kind::VirtualHost);
        sub.take_delta(removals, &|name| {
            routes.is_none_or(|routes| routes.delivered(route_configuration(name)))
        })
    }

    fn respond(
        &mut self,
        sub: &mut Subscription,
        bundle: &Bundle,
        view: &View,
        now: Instant,
        out: &mut Vec<Response>,
    ) {
        // Virtual hosts are never split: a listener would open on a part of them, and a domain
        // that moves would be in none or in two.
        let split = self.protocol == Protocol::Delta && sub.kind != Kind::VirtualHost;
        let limit = if split { PART } else { usize::MAX };
        let mut removed = bundle.removed.clone();
        for resources in parts(&bundle.resources, limit) {
            let version = match self.protocol {
                Protocol::Delta => view.generation().to_string(),
                Protocol::Sotw => {
                    Version::combine(resources.iter().map(Resource::version)).to_string()
                }
            };
            let url = Cow::Borrowed(sub.kind.type_url());
            let removed = std::mem::take(&mut removed);
            let response = self.response(Some(sub.kind), url, version, resources, removed);
            let (resources, removed) = (response.resources.clone(), response.removed.clone());
            sub.flights.launch(response.nonce, now, resources, removed);
            out.push(response);
        }
    }

    fn response(
        &mut self,
        kind: Option<Kind>,
        type_url: Cow<'static, str>,
        version: String,
        resources: Arc<[Resource]>,
        removed: Arc<[Arc<str>]>,
    ) -> Response {
        self.nonce += 1;
        let (protocol, nonce) = (self.protocol, self.nonce);
        Response { protocol, kind, type_url, nonce, version, resources, removed }
    }

    /// When [`drive`](Self::drive) has something to do although nothing was heard.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let answers = self.subs.values().filter_map(|sub| sub.flights.deadline());
        let order = self.order.deadline(&self.subs, now);
        answers.chain(order).filter(|at| *at > now).min()
    }
}

/// The nonce of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nonce {
    /// It has none.
    None,
    /// In our form.
    Of(u64),
    /// In some other form.
    Foreign,
}

impl Nonce {
    fn parse(text: &str) -> Self {
        if text.is_empty() { Self::None } else { text.parse().map_or(Self::Foreign, Self::Of) }
    }
}
