//! What waits for what: make before break, across the types of one stream (statements 19 to 22).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::owed::Why;
use super::session::Subscriptions;
use super::subscription::{Bundle, Subscription};
use super::{Batch, Kind, Resource, View};

/// How long what may name a new cluster waits until the client asked for its endpoints. An Envoy
/// asks at once; a client that never does must not wait for ever.
pub(super) const ENDPOINTS: Duration = Duration::from_secs(2);

/// How long a reconnecting client has for subscribing again to what may name a cluster that it
/// is to lose. An Envoy sends all of its first requests at once.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// How long listeners and routes are held back by clusters that go on changing, before newer
/// snapshots wait for them.
pub(super) const FAIRNESS: Duration = Duration::from_secs(1);

/// How many cluster responses are remembered until endpoints are first asked for.
const EARLY: usize = 8;

/// The waiting on one stream.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// When the client first said that it has something from an earlier stream.
    pub(super) resumed: Option<Instant>,
    /// Load assignments of clusters just sent that the client has not asked for, and until when
    /// they are waited for.
    wanting: BTreeMap<Arc<str>, Instant>,
    /// Whether any of them is there to be asked for.
    waiting: bool,
    /// Clusters that were sent before endpoints were subscribed to.
    early: Vec<Batch>,
    /// Since when something of the later types is held back.
    held: Option<Instant>,
}

impl Order {
    /// Whether a type may be sent. Nothing that names a new cluster precedes its endpoints.
    pub(super) fn open(&self, kind: Kind, subs: &Subscriptions) -> bool {
        let early = matches!(kind, Kind::Cluster | Kind::Endpoints);
        let lacking = |kind| subs.get(&kind).is_some_and(Subscription::lacking);
        early || !self.waiting && !lacking(Kind::Cluster) && !lacking(Kind::Endpoints)
    }

    /// Whether a type may lose resources: what names them must have been accepted without them.
    pub(super) fn removals(&self, kind: Kind, subs: &Subscriptions, now: Instant) -> bool {
        let users: &[Kind] = match kind {
            Kind::Cluster => &[Kind::Listener, Kind::Routes, Kind::VirtualHost],
            Kind::Endpoints => &[Kind::Cluster],
            Kind::Routes => &[Kind::Listener],
            Kind::Listener | Kind::VirtualHost => return true,
        };
        let late = self.resumed.is_none_or(|resumed| now >= resumed + GRACE);
        users.iter().all(|user| match subs.get(user) {
            None => late,
            Some(sub) if kind == Kind::Endpoints => !sub.removing(),
            Some(sub) => sub.accepted(now),
        })
    }

    /// Notes what was sent, and makes due what has to follow it.
    pub(super) fn sent(
        &mut self,
        kind: Kind,
        bundle: &Bundle,
        subs: &mut Subscriptions,
        view: &View,
        now: Instant,
    ) {
        match kind {
            Kind::Cluster => self.clusters(bundle, subs, view, now),
            Kind::Endpoints if self.wanting.is_empty() => {}
            Kind::Endpoints => {
                bundle.resources.iter().map(Resource::name).for_each(|name| {
                    self.wanting.remove(name);
                });
                self.expire(view, now);
            }
            Kind::Routes => routes(bundle, subs, view),
            Kind::Listener | Kind::VirtualHost => {}
        }
    }

    /// A cluster that is new or changed is followed by its endpoints even if they did not change:
    /// without them Envoy does not make it warm, and it does not ask again (statement 20).
    fn clusters(&mut self, sent: &Bundle, subs: &mut Subscriptions, view: &View, now: Instant) {
        let Some(endpoints) = subs.get_mut(&Kind::Endpoints) else {
            if self.early.len() >= EARLY {
                self.early.remove(0);
            }
            self.early.push(sent.news.clone());
            return;
        };
        self.follow(&sent.news, endpoints, now);
        self.expire(view, now);
    }

    /// Notes that endpoints were subscribed to. Those of clusters sent before are due, even where
    /// the client has them from an earlier stream; those that it did not name are waited for.
    pub(super) fn endpoints_asked(&mut self, subs: &mut Subscriptions, now: Instant) {
        let Some(endpoints) = subs.get_mut(&Kind::Endpoints) else { return };
        self.wanting.retain(|name, _| !endpoints.covers(name));
        for sent in std::mem::take(&mut self.early) {
            self.follow(&sent, endpoints, now);
        }
    }

    /// The load assignments of clusters that were sent are due.
    fn follow(&mut self, clusters: &Batch, endpoints: &mut Subscription, now: Instant) {
        if endpoints.blank && endpoints.wanted() == clusters.needs() {
            // They are owed already, and nothing else is.
            return;
        }
        for name in clusters.iter().filter_map(Resource::needs) {
            if endpoints.covers(name) {
                endpoints.ask(name.clone(), endpoints.has(name));
            } else {
                self.wanting.insert(name.clone(), now + ENDPOINTS);
            }
        }
    }

    /// The endpoints of clusters that the client refused by name are not waited for: it never asks
    /// for them, and what does not name these clusters has to go on (statement 6). Where a cluster
    /// of the same response that it kept needs them too, it does ask.
    pub(super) fn refused(&mut self, clusters: &Batch, names: &[String]) {
        let (bad, good): (Vec<_>, Vec<_>) = clusters
            .iter()
            .partition(|cluster| names.iter().any(|name| **name == **cluster.name()));
        let good: BTreeSet<_> = good.into_iter().filter_map(Resource::needs).collect();
        for needs in bad.into_iter().filter_map(Resource::needs) {
            if !good.contains(needs) {
                self.wanting.remove(needs);
            }
        }
    }

    /// Forgets what was waited for long enough, and looks at what is left.
    pub(super) fn expire(&mut self, view: &View, now: Instant) {
        self.wanting.retain(|_, until| *until > now);
        let there = |name: &str| view.version(Kind::Endpoints, name).is_some();
        self.waiting = self.wanting.keys().any(|name| there(name));
    }

    /// Notes whether the later types are held back.
    pub(super) fn note(&mut self, subs: &Subscriptions, now: Instant) {
        let held = [Kind::Listener, Kind::Routes, Kind::VirtualHost].into_iter().any(|kind| {
            subs.get(&kind).is_some_and(Subscription::pending) && !self.open(kind, subs)
        });
        self.held = held.then(|| self.held.unwrap_or(now));
    }

    /// Whether newer snapshots have to wait, so that what is held back gets its turn.
    pub(super) fn frozen(&self, now: Instant) -> bool {
        self.held.is_some_and(|since| now >= since + FAIRNESS)
    }

    /// The next moment at which something here changes by itself.
    pub(super) fn deadline(&self, subs: &Subscriptions, now: Instant) -> Option<Instant> {
        let grace = self.resumed.map(|resumed| resumed + GRACE);
        let grace = grace.filter(|_| subs.values().any(Subscription::pending));
        self.wanting.values().copied().chain(grace).filter(|at| *at > now).min()
    }
}

/// A route configuration is followed by all of its virtual hosts: Envoy asks for none of one that
/// joins later, and drops those that came before it (statement 22).
fn routes(sent: &Bundle, subs: &mut Subscriptions, view: &View) {
    let Some(hosts) = subs.get_mut(&Kind::VirtualHost) else { return };
    if sent.joined.is_empty() {
        return;
    }
    for name in view.names(Kind::VirtualHost) {
        let table = route_configuration(&name);
        if hosts.covers(&name) && sent.joined.iter().any(|joined| **joined == *table) {
            let has = hosts.has(&name);
            hosts.ask(name, has);
        }
    }
}

/// Lets virtual hosts whose route configuration is gone wait while the client names it: what used
/// it there is replaced by what is not warm yet, or drains, and an Envoy that loses them answers
/// 404 meanwhile. It has no use for the removal of the configuration itself.
pub(super) fn leave(subs: &mut Subscriptions, view: &View) {
    let Some(mut hosts) = subs.remove(&Kind::VirtualHost) else { return };
    if let Some(routes) = subs.get(&Kind::Routes) {
        for (name, owed) in &mut hosts.owed {
            if !(owed.removal() || owed.why == Why::Leaving) {
                continue;
            }
            let table = route_configuration(name);
            let gone = owed.now.is_none() && view.version(Kind::Routes, table).is_none();
            let waits = gone && routes.named.contains(table, Kind::Routes, &routes.view);
            owed.why = if waits { Why::Leaving } else { Why::Differs };
        }
    }
    subs.insert(Kind::VirtualHost, hosts);
}

/// The route configuration of a virtual host: everything before the last slash of its name.
pub(super) fn route_configuration(virtual_host: &str) -> &str {
    virtual_host.rsplit_once('/').map_or("", |(table, _)| table)
}
