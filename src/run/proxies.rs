//! Where proxies connect, and who is served.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::{info, warn};

use crate::cli::serve::{Options, XdsSocket};
use crate::model::NodeId;
use crate::xds::{Admit, CanarySettings, Fate, ListenError, Listener, Store};

/// The addresses that were asked for, bound.
pub(super) async fn listeners(options: &Options) -> Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    if let Some(address) = options.xds_address {
        let listener = Listener::tcp(address).await.context("--xds-address")?;
        let bound = listener.address().unwrap_or(address);
        info!(address = %bound, "xDS on TCP");
        listeners.push(listener);
    }
    let (path, required) = match &options.xds_socket {
        XdsSocket::Off => return Ok(listeners),
        XdsSocket::Required(path) => (path, true),
        XdsSocket::IfPossible(path) => (path, false),
    };
    let socket: Result<Listener, ListenError> = Listener::unix(path).await;
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
    Ok(listeners)
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
