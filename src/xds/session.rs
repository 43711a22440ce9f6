//! A stream as a state machine: requests, snapshots and time in, responses out.
//!
//! Nothing here waits, reads a clock or touches a socket; what is sent next is a pure decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::flight::Flight;
use super::heard::{self, Admit, Fault, Heard, Nonce, Refusal};
use super::order::Order;
use super::request::{Protocol, Request, Wants};
use super::subscription::Subscription;
use super::{Kind, Lens, Resource, Snapshot, View};

/// The subscriptions of a stream.
pub(super) type Subscriptions = BTreeMap<Kind, Subscription>;

/// Types that are not served and were asked for before there was anything to answer with.
const STRANGERS: usize = 16;
/// How many names of such a type are remembered.
const STRANGE_NAMES: usize = 4096;
/// How many requests are kept while the node has no view. A client that hears nothing has its first
/// ones to say, and little more.
const WAITING: usize = 64;

/// How a node stands with the newest snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is known, and served.
    Served,
    /// It is not known yet: nothing is sent.
    Waiting,
    /// It was known, and is not any more: nothing is sent, so that it keeps what it has.
    Forgotten,
}

/// One stream.
pub struct Session {
    pub(super) protocol: Protocol,
    pub(super) lens: Lens,
    /// The one type of a per-type service.
    pub(super) only: Option<Kind>,
    pub(super) admit: Admit,
    pub(super) node: Option<Arc<str>>,
    pub(super) newest: Option<Arc<Snapshot>>,
    pub(super) view: Option<View>,
    pub(super) subs: Subscriptions,
    pub(super) order: Order,
    pub(super) nonce: u64,
    /// The moment for which it was last decided what to send.
    pub(super) driven: Option<Instant>,
    pub(super) strangers: BTreeMap<String, Vec<Arc<str>>>,
    /// What was asked for before the node had a view.
    pub(super) waiting: Vec<(Kind, Nonce, Wants)>,
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
            driven: None,
            strangers: BTreeMap::new(),
            waiting: Vec::new(),
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

    /// How many names are kept in memory that nothing but the client's requests brought there, of all
    /// types together. What it left out of all there is does not count: those names are there anyway.
    pub fn names(&self) -> usize {
        let waiting = self.waiting.iter().map(|(.., wants)| wants.names());
        self.subs.values().map(|sub| sub.named.odd().len()).chain(waiting).sum()
    }

    /// How the node stands with the newest snapshot; `None` before there is one, or a node.
    pub fn standing(&self) -> Option<Standing> {
        let known = self.newest.as_ref()?.nodes.contains_key(self.node.as_deref()?);
        Some(match (known, self.served()) {
            (true, _) => Standing::Served,
            (false, false) => Standing::Waiting,
            (false, true) => Standing::Forgotten,
        })
    }

    /// The generation of the snapshot that is sent from.
    pub fn generation(&self) -> Option<u64> {
        self.view.as_ref().map(View::generation)
    }

    /// The generation of which the client has all that it wants, and accepted it.
    pub fn settled(&self, now: Instant) -> Option<u64> {
        let accepted = |sub: &Subscription| sub.accepted(now) && sub.flights.answered();
        let settled = !self.subs.is_empty() && self.subs.values().all(accepted);
        self.generation().filter(|_| settled)
    }

    /// Whether something of a type was refused for a reason that may pass, and goes again by itself:
    /// that says nothing against a snapshot.
    pub(super) fn tries_again(&self, kind: Kind) -> bool {
        self.subs.get(&kind).is_some_and(|sub| !sub.retries.is_empty())
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
        let nonce = Nonce::parse(&request.nonce);
        if self.view.is_none() {
            if self.waiting.len() >= WAITING {
                return Err(Fault::Impatient(WAITING));
            }
            self.waiting.push((kind, nonce, request.wants));
            return Ok(Heard::Fine);
        }
        let first = !self.subs.contains_key(&kind);
        let heard = match request.error {
            Some(words) if !first => self.refused(nonce, words, now),
            _ => {
                self.accepted(nonce);
                Heard::Fine
            }
        };
        self.want(kind, nonce, &request.wants, now);
        Ok(heard)
    }

    /// The types that were asked for before the node had a view.
    pub(super) fn awaited(&self) -> BTreeSet<Kind> {
        self.waiting.iter().map(|(kind, ..)| *kind).collect()
    }

    /// Takes in what is wanted, the first time or later.
    pub(super) fn want(&mut self, kind: Kind, nonce: Nonce, wants: &Wants, now: Instant) {
        let Some(view) = &self.view else { return };
        match (self.subs.get_mut(&kind), wants) {
            (None, Wants::All(names)) => {
                self.subs.insert(kind, Subscription::first_sotw(kind, view, names));
            }
            (Some(sub), Wants::All(names)) => {
                // A nonce of another stream, or of another type, or of a response that was
                // overtaken: the request is stale (statement 7).
                let last = sub.flights.last();
                if last == 0 || nonce == Nonce::None || nonce == Nonce::Of(last) {
                    sub.name_sotw(names);
                }
            }
            (None, Wants::Change { subscribe, unsubscribe, initial }) => {
                if !initial.is_empty() && self.only.is_none() {
                    self.order.resumed.get_or_insert(now);
                }
                let sub = Subscription::first_delta(kind, view, subscribe, unsubscribe, initial);
                self.subs.insert(kind, sub);
            }
            (Some(sub), Wants::Change { subscribe, unsubscribe, .. }) => {
                sub.change_delta(subscribe, unsubscribe);
            }
        }
        if kind == Kind::Endpoints {
            self.order.endpoints_asked(&mut self.subs, now);
        }
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
            subscribe.iter().filter(|name| *name != "*").map(Into::into).collect();
        if known && !names.is_empty() {
            let all = self.strangers.entry(url).or_default();
            // The first of too many: a client that waits must not fill the memory meanwhile.
            all.extend(names.into_iter().take(STRANGE_NAMES.saturating_sub(all.len())));
            all.sort();
            all.dedup();
        }
    }

    /// The response that a request answers, and the subscription that it belongs to. Nonces are
    /// unique on the stream, so that an answer under another type's URL finds it too (statement 7).
    fn land(&mut self, nonce: Nonce) -> Option<(Flight, &mut Subscription)> {
        let Nonce::Of(nonce) = nonce else { return None };
        let sotw = self.protocol == Protocol::Sotw;
        self.subs.values_mut().find_map(|sub| {
            let flight = sub.flights.land(nonce)?;
            if sotw {
                sub.flights.supersede(nonce);
            }
            Some((flight, sub))
        })
    }

    fn accepted(&mut self, nonce: Nonce) {
        if let Some((flight, sub)) = self.land(nonce) {
            sub.refusal = None;
            sub.relieved(&flight);
        }
    }

    fn refused(&mut self, nonce: Nonce, words: String, now: Instant) -> Heard {
        let view = self.view.clone().filter(View::retries);
        let Some((flight, sub)) = self.land(nonce) else { return Heard::Fine };
        let kind = sub.kind;
        let repeated = sub.refusal.as_ref() == Some(&words) || sub.is_retry(&flight);
        let all = flight.resources.iter().map(Resource::name).chain(flight.removed.iter());
        let told = all.filter(|name| heard::names(&words, name));
        let names: Vec<String> = told.map(ToString::to_string).collect();
        sub.refuse(&flight, words.clone());
        if let Some(view) = view {
            sub.retry_later(&flight, &names, &view, now);
        }
        if kind == Kind::Cluster {
            self.order.refused(&flight.resources, &names);
        }
        Heard::Refused(Refusal { kind, words, names, generation: flight.generation, repeated })
    }
}
