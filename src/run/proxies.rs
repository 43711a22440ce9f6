//! Where proxies connect, and who is served.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::{info, warn};

use crate::admin;
use crate::cli::serve::{Options, XdsSocket};
use crate::health::Health;
use crate::model::NodeId;
use crate::tls::{self, Material as _, Mutual, MutualFiles, News};
use crate::vouch::{Known, Rules};
use crate::xds::{Admit, CanarySettings, Fate, ListenError, Listener, Proven, Store, Tls, Vouch};

/// What is spoken over TLS.
const HTTP2: &[&[u8]] = &[b"h2"];

/// TLS with what it works with at the moment.
type Current = Arc<ArcSwap<Mutual>>;

/// The addresses that were asked for, bound, and what TLS works with, where it is asked for.
pub(super) async fn listeners(options: &Options) -> Result<(Vec<Listener>, Option<Secured>)> {
    let mut listeners = Vec::new();
    let secured = options.access.tls.as_ref().map(Secured::read).transpose()?;
    if let Some(address) = options.xds_address {
        let listener = match &secured {
            Some(secured) => Listener::tls(address, secured.tls()).await,
            None => Listener::tcp(address).await,
        };
        let listener = listener.context("--xds-address")?;
        let bound = listener.address().unwrap_or(address);
        let tls = secured.is_some();
        info!(address = %bound, tls, "xDS on TCP");
        if !tls && !bound.ip().to_canonical().is_loopback() {
            warn!(address = %bound, "--xds-insecure: whoever reaches this address gets the configuration of every proxy");
        }
        listeners.push(listener);
    }
    let (path, required) = match &options.xds_socket {
        XdsSocket::Off => return Ok((listeners, secured)),
        XdsSocket::Required(path) => (path, true),
        XdsSocket::IfPossible(path) => (path, false),
    };
    let socket: Result<Listener, ListenError> =
        Listener::unix(path, options.access.socket_mode).await;
    match socket {
        Ok(listener) => {
            info!(path = %path.display(), "xDS on a Unix socket");
            listeners.push(listener);
        }
        Err(error) if required => return Err(error).context("--xds-socket"),
        Err(error) => {
            let error = anyhow::Error::new(error);
            warn!("{error:#}; serving TCP alone (name another path with --xds-socket, or none)");
        }
    }
    Ok((listeners, secured))
}

/// TLS whose files were read.
pub(super) struct Secured {
    files: MutualFiles,
    current: Current,
}

impl Secured {
    fn read(files: &MutualFiles) -> Result<Self> {
        let first = files.read(HTTP2, tls::unix_now())?;
        Ok(Self { files: files.clone(), current: Arc::new(ArcSwap::from_pointee(first)) })
    }

    fn tls(&self) -> Tls {
        let current = self.current.clone();
        Tls {
            config: Arc::new(move || current.load().config()),
            identify: Arc::new(|certificate| {
                let identity = tls::identity(certificate).map_err(|error| error.to_string())?;
                let left = identity.until.saturating_sub(tls::unix_now());
                let name = identity.id.to_string().into();
                Ok(Proven { name, left: Duration::from_secs(left) })
            }),
        }
    }

    /// Takes up what takes the files' place, until it is dropped.
    pub(super) async fn follow(self, health: Health, metrics: admin::Metrics) {
        let part = health.apart("xds-tls");
        let counts = tls::Metrics::default();
        metrics.register(|registry| counts.register(registry, "xds_tls"));
        let first = Mutual::clone(&self.current.load());
        counts.expires(first.until());
        part.ready();
        let (files, again) = (&self.files, self.files.clone());
        let paths = [&*files.pair.certificate, &*files.pair.key, &*files.authorities];
        let read = move |wall| again.read(HTTP2, wall);
        tls::follow(&paths, first, read, |news| match news {
            News::Good { read, left, new } => {
                if new {
                    info!(expires_in = left, "new files of TLS are used for xDS from now on");
                    counts.reloaded("taken");
                }
                self.current.store(Arc::new(read.clone()));
                counts.expires(read.until());
                part.ready();
            }
            News::Broken { error, expired } => {
                warn!("{error}; the last good files are used meanwhile");
                counts.reloaded("broken");
                if expired {
                    part.waiting(format!("our certificate has expired: {error}"));
                } else {
                    part.degraded(format!("{error}; the last good files are used"));
                }
            }
        })
        .await;
    }
}

/// Who may speak for which node, by what proxies prove to be. Our trust domain is that of the start:
/// files that are read again may bring another certificate, but not other rules, or none.
pub(super) fn vouch(options: &Options, secured: Option<&Secured>) -> Vouch {
    let access = &options.access;
    let own = || secured?.current.load().trust_domain().map(str::to_owned);
    let trust_domain = access.trust_domain.clone().or_else(own);
    let rules = Rules { trust_domain, node_proxies: access.node_proxies.clone() };
    Arc::new(move |claim| {
        let known = match claim.known {
            Some(spec) => Known::Yes(spec.identity.as_deref()),
            None => Known::No,
        };
        rules.check(claim.node, claim.proven, known).map_err(|differs| differs.to_string())
    })
}

/// Where snapshots are kept for the streams, and news of what becomes of those that are tried on a
/// few of them first.
pub(super) fn store(canary: Option<CanarySettings>) -> (Store, Option<UnboundedReceiver<Fate>>) {
    let Some(settings) = canary else { return (Store::default(), None) };
    // One for each trial, and trials follow each other.
    let (sender, fates) = unbounded_channel();
    let on_fate = Box::new(move |fate| {
        // A reconciler that is gone hears nothing, and need not.
        let _ = sender.send(fate);
    });
    (Store::with_canaries(settings, on_fate), Some(fates))
}

/// Who is served, by node id: whoever bears one of the two forms. One that is not known waits.
pub(super) fn admit() -> Admit {
    Arc::new(|id| id.parse::<NodeId>().map(drop).map_err(|error| error.to_string()))
}
