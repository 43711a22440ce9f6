//! What a session sends, and when.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::order;
use super::request::Protocol;
use super::response::Response;
use super::session::Session;
use super::subscription::{Bundle, Subscription};
use super::{Batch, Kind, View};

/// How often the types are gone through at a time. Each can make another one due, once.
const PASSES: usize = 4;

impl Session {
    /// Makes the newest snapshot the one that is sent from, unless what is held back needs its
    /// turn first. A node that it does not know keeps what it has.
    pub(super) fn adopt(&mut self, now: Instant) {
        let (Some(newest), Some(node)) = (&self.newest, &self.node) else { return };
        let seen = self.view.as_ref().is_some_and(|view| view.generation() >= newest.generation);
        if seen || self.order.frozen(now) {
            return;
        }
        if let Some(view) = View::new(newest, node, &self.lens) {
            self.subs.values_mut().for_each(|sub| sub.refresh(&view));
            self.view = Some(view);
            for (kind, nonce, wants) in std::mem::take(&mut self.waiting) {
                self.want(kind, nonce, &wants, now);
            }
        }
    }

    /// All that is to be sent now, in order. Empty: nothing before the next request, the next
    /// snapshot or the [`deadline`](Self::deadline).
    pub fn drive(&mut self, now: Instant) -> Vec<Response> {
        let mut out = Vec::new();
        self.driven = Some(now);
        // What was sent may let something else go; a snapshot that had to wait may be taken in.
        for _ in 0..PASSES {
            self.adopt(now);
            let Some(view) = self.view.clone() else { return out };
            for (url, removed) in std::mem::take(&mut self.strangers) {
                let version = view.generation().to_string();
                let nothing = Batch::default();
                out.push(self.response(None, url.into(), version, nothing, removed.into()));
            }
            self.subs.values_mut().for_each(|sub| sub.retry(now));
            self.order.expire(&view, now);
            order::leave(&mut self.subs, &view);
            let mut moved = false;
            for kind in Kind::ALL {
                moved |= self.send(kind, &view, now, &mut out);
            }
            let frozen = self.order.frozen(now);
            self.order.note(&self.subs, now);
            if !moved && frozen == self.order.frozen(now) {
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
        sub.take_delta(removals, &|table| routes.is_none_or(|routes| routes.delivered(table)))
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
        let whole = || vec![bundle.resources.clone()];
        let parts = if split { bundle.resources.parts() } else { whole() };
        let mut removed = bundle.removed.clone();
        for resources in parts {
            let version = match self.protocol {
                Protocol::Delta => view.generation().to_string(),
                Protocol::Sotw => resources.version().to_string(),
            };
            let url = Cow::Borrowed(sub.kind.type_url());
            let removed = std::mem::take(&mut removed);
            let response = self.response(Some(sub.kind), url, version, resources, removed);
            let (resources, removed) = (response.resources.clone(), response.removed.clone());
            sub.flights.launch(response.nonce, now, view.generation(), resources, removed);
            out.push(response);
        }
    }

    fn response(
        &mut self,
        kind: Option<Kind>,
        type_url: Cow<'static, str>,
        version: String,
        resources: Batch,
        removed: Arc<[Arc<str>]>,
    ) -> Response {
        self.nonce += 1;
        let (protocol, nonce) = (self.protocol, self.nonce);
        Response { protocol, kind, type_url, nonce, version, resources, removed }
    }

    /// When [`drive`](Self::drive) has something to do although nothing was heard.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        // What came due since then, in the time that it took, was not seen.
        let now = self.driven.map_or(now, |driven| driven.min(now));
        let answers = self.subs.values().filter_map(|sub| sub.flights.deadline());
        let retries = self.subs.values().filter_map(|sub| sub.retries.deadline());
        let order = self.order.deadline(&self.subs, now);
        let clusters = self.subs.get(&Kind::Cluster).filter(|sub| sub.removing());
        let overdue = clusters.and_then(|sub| sub.flights.overdue_at(now));
        answers.chain(retries).chain(order).chain(overdue).filter(|at| *at > now).min()
    }
}
