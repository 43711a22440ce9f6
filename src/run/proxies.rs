//! Where proxies connect, and who is served.

use std::sync::Arc;

use anyhow::{Context, Result};
use tracing::{info, warn};

use crate::cli::serve::{Options, XdsSocket};
use crate::model::NodeId;
use crate::xds::{Admit, ListenError, Listener};

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

/// Who is served, by node id: whoever bears one of the two forms. One that is not known waits.
pub(super) fn admit() -> Admit {
    Arc::new(|id| id.parse::<NodeId>().map(drop).map_err(|error| error.to_string()))
}
