//! Starting and stopping the resolver.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tracing::info;

use super::engine::Engine;
use super::limit::Limit;
use super::lookup::Lookups;
use super::metrics::Metrics;
use super::self_check;
use super::serve::{BindError, Bound, Server};
use super::upstream::{Upstreams, resolv_conf};
use super::watch::Follower;
use super::zone::{NotDns, Zone};
use crate::health::Part;
use crate::model::MeshNames;

/// What the resolver was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The snapshot file.
    pub snapshot: PathBuf,
    /// The addresses to serve by UDP and TCP. Port 0 takes any that is free.
    pub listen: Vec<SocketAddr>,
    /// The servers that know all other names; none: those of `/etc/resolv.conf`.
    pub upstream: Vec<SocketAddr>,
    /// Both domains.
    pub names: MeshNames,
    /// UDP sockets, and so threads, for each address.
    pub sockets: usize,
    /// Queries a second that one client may ask by UDP; `None`: any number.
    pub limit: Option<NonZeroU32>,
}

/// Why the resolver cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A domain is no DNS name.
    #[error(transparent)]
    Names(#[from] NotDns),
    /// An address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No upstream was named, and there is none to fall back on.
    #[error("/etc/resolv.conf names no nameserver ({0}): name one with --upstream")]
    NoUpstream(String),
    /// An upstream would be the resolver itself.
    #[error(
        "the upstream {0} is an address that this resolver listens on: it would ask itself for ever; name the cluster's DNS with --upstream"
    )]
    Itself(SocketAddr),
    /// The system gives no thread.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The resolver, running.
#[derive(Debug)]
pub struct Resolver {
    server: Server,
    addresses: Vec<SocketAddr>,
}

impl Resolver {
    /// Starts it. The table is read before the first address is bound: beside a predecessor, from
    /// that moment on some of its clients are ours.
    ///
    /// To be called within a runtime.
    ///
    /// # Errors
    /// Where something cannot be had that was asked for. A snapshot file that is not there, or
    /// broken, is no such thing.
    pub fn start(options: &Options, metrics: Arc<Metrics>, part: Part) -> Result<Self, StartError> {
        let zone = Zone::new(&options.names)?;
        let upstream = upstream(options)?;
        let table = Arc::new(ArcSwapOption::empty());
        let mut follower = Follower::new(&options.snapshot, table.clone(), metrics.clone(), part);
        follower.look();
        follower.spawn()?;

        let upstreams = Upstreams::new(&upstream, metrics.clone());
        let lookups = Lookups::new(upstreams, metrics.clone());
        let domain = zone.domain().clone();
        let limit = Limit::new(options.limit);
        let engine = Arc::new(Engine::new(zone, table, lookups, limit, metrics.clone()));
        let bound = Bound::new(&options.listen, options.sockets)?;
        let addresses = bound.addresses().to_vec();
        let server = bound.serve(&engine)?;
        tokio::spawn(self_check::run(addresses.clone(), domain, metrics));
        info!(?addresses, ?upstream, "resolving");
        Ok(Self { server, addresses })
    }

    /// The addresses that it serves, with their real ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Answers what has come and leaves all else to whoever is bound to the addresses beside it.
    pub async fn stop(self) {
        self.server.drain().await;
    }
}

/// The servers to ask.
fn upstream(options: &Options) -> Result<Vec<SocketAddr>, StartError> {
    let upstream = if options.upstream.is_empty() {
        let text = std::fs::read_to_string(resolv_conf::PATH);
        let text = text.map_err(|error| StartError::NoUpstream(error.to_string()))?;
        resolv_conf::nameservers(&text)
    } else {
        options.upstream.clone()
    };
    if upstream.is_empty() {
        return Err(StartError::NoUpstream("it was read".to_owned()));
    }
    let ours = |address: &&SocketAddr| {
        options.listen.iter().any(|listen| {
            let all = listen.ip().is_unspecified() && address.ip().is_loopback();
            address.port() == listen.port() && (address.ip() == listen.ip() || all)
        })
    };
    match upstream.iter().find(ours) {
        Some(itself) => Err(StartError::Itself(*itself)),
        None => Ok(upstream),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn the_resolver_never_asks_itself() {
        let check = |listen: &str, upstream: &str| {
            super::upstream(&Options {
                snapshot: "x".into(),
                listen: vec![listen.parse().unwrap()],
                upstream: vec![upstream.parse().unwrap()],
                names: MeshNames::default(),
                sockets: 1,
                limit: None,
            })
            .is_ok()
        };
        assert!(!check("127.0.0.1:53", "127.0.0.1:53"));
        assert!(!check("0.0.0.0:53", "127.0.0.1:53"));
        assert!(check("127.0.0.1:18054", "127.0.0.1:53"));
        assert!(check("127.0.0.1:53", "127.0.0.2:53"));
    }
}
