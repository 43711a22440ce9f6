//! What is made of one service, and kept as long as the service stays as it is.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::chains::{self, Chains};
use super::cluster::{self, Marks, Tails};
use super::endpoints::{self, Places};
use super::{Settings, checks, domains, naming, routes};
use crate::model::{Finding, MeshService, ServiceKey};
use crate::xds::{Entry, Resource, Rope, Stem};

/// What a service lost, and to whom.
pub(super) type Lost = BTreeMap<Arc<str>, ServiceKey>;

/// The parts that all services share.
#[derive(Debug)]
pub(super) struct Common {
    /// The options.
    pub settings: Settings,
    /// The tails of clusters.
    pub tails: Tails,
    /// The retry policy, as a field of a virtual host.
    pub retries: Bytes,
    /// What the clusters of node proxies have besides; `None` while there are none.
    pub marks: Option<Marks>,
}

/// A virtual host, all but its name.
#[derive(Debug)]
pub(super) struct Host {
    /// The name, below that of the route configuration.
    pub name: Arc<str>,
    /// As every namespace sees it.
    pub qualified: Stem,
    /// As its own namespace sees it: with the bare name.
    pub own: Stem,
}

/// What is made of one service.
#[derive(Debug)]
pub(super) struct Made {
    /// What it was made of.
    pub source: Arc<MeshService>,
    /// Whether nothing of it can be served, not even its names.
    pub quarantined: bool,
    /// What it lost to others when it was made.
    pub lost: Lost,
    /// Its clusters.
    pub clusters: Vec<Resource>,
    /// The same as every table holds them.
    pub cluster_entries: Vec<(Arc<str>, Entry)>,
    /// Its load assignments.
    pub assignments: Vec<(Arc<str>, Entry)>,
    /// Its virtual host, where it has an HTTP port.
    pub host: Option<Host>,
    /// Its chains.
    pub chains: Chains,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// What a service would have for itself alone: its domains, its bare name in its namespace and the
/// addresses of its chains. Empty where nothing of it can be served.
pub(super) fn claims(settings: &Settings, service: &MeshService) -> Arc<[Arc<str>]> {
    if checks::service(service).is_some() {
        return Arc::new([]);
    }
    let mut claims = Vec::new();
    if service.has_http() {
        claims.extend(domains::qualified(&settings.names, service).into_iter().map(Arc::from));
        claims.push(bare_claim(service));
    }
    if chains::has_tcp_chain(settings.mode, service) {
        claims.extend(service.owned_ips.iter().map(|ip| chain_claim(*ip)));
    }
    claims.into()
}

/// The claim on a bare name. With its slash it is equal to no domain.
fn bare_claim(service: &MeshService) -> Arc<str> {
    format!("{}/{}", service.key.namespace, service.service).into()
}

/// The claim on the chains of an address.
fn chain_claim(ip: IpAddr) -> Arc<str> {
    format!("connections to {ip}").into()
}

impl Common {
    /// Makes everything of a service.
    pub(super) fn make(&self, source: &Arc<MeshService>, lost: Lost, places: &Places) -> Made {
        let mut made = Made {
            source: source.clone(),
            quarantined: false,
            clusters: Vec::new(),
            cluster_entries: Vec::new(),
            assignments: Vec::new(),
            host: None,
            chains: Chains::default(),
            findings: checks::lost(source, &lost).collect(),
            lost,
        };
        if let Some(finding) = checks::service(source) {
            made.findings.push(finding);
            made.quarantined = true;
            return made;
        }
        let mut ips = source.owned_ips.clone();
        ips.retain(|ip| !made.lost.contains_key(&chain_claim(*ip)));
        ips.sort_unstable();
        ips.dedup();
        made.chains = chains::of_service(&self.settings, source, &ips);
        made.host = self.host(source, &made.lost);
        made.clusters = self.tails.of_service(&self.settings, source);
        made.cluster_entries = entries(&made.clusters, self.marks.as_ref());
        made.assignments = endpoints::of_service(source, &made.clusters, places);
        made
    }

    fn host(&self, service: &MeshService, lost: &Lost) -> Option<Host> {
        let mut domains = domains::qualified(&self.settings.names, service);
        domains.retain(|domain| !lost.contains_key(domain.as_str()));
        // Envoy refuses a virtual host without any domain.
        if !service.has_http() || domains.is_empty() {
            return None;
        }
        let routes = routes::of_service(&self.settings, service);
        let stem = |domains| {
            let parts = [routes::domains(domains), routes.clone(), self.retries.clone()];
            Stem::new(Rope::new(parts))
        };
        let mut with_bare = domains.clone();
        if !lost.contains_key(&bare_claim(service)) {
            with_bare.extend(domains::bare(service));
        }
        Some(Host {
            name: naming::virtual_host(&service.key).into(),
            qualified: stem(domains),
            own: stem(with_bare),
        })
    }
}

fn entries(clusters: &[Resource], marks: Option<&Marks>) -> Vec<(Arc<str>, Entry)> {
    let each = clusters.iter();
    each.map(|made| (made.name().clone(), cluster::entry(made, marks))).collect()
}

impl Made {
    /// The service as far as it may have names: one wrong name would cost a whole listener.
    pub(super) fn named(&self) -> Option<&MeshService> {
        (!self.quarantined).then_some(&*self.source)
    }

    /// Has a form of each cluster for node proxies from now on.
    pub(super) fn mark(&mut self, marks: &Marks) {
        self.cluster_entries = entries(&self.clusters, Some(marks));
    }

    /// Makes the load assignments again, seen from other places.
    pub(super) fn see_from(&mut self, places: &Places) {
        self.assignments = endpoints::of_service(&self.source, &self.clusters, places);
    }
}
