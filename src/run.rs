//! The one place that wires the parts together.

mod once;
mod webhook;

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::FutureExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{info, warn};

pub use crate::source::manifest::{Form, RawDocument, documents};
pub use once::{Once, once};

use crate::admission;
use crate::capture::{self, Reconciler};
use crate::cli::serve::{Options, XdsSocket};
use crate::model::NodeId;
use crate::source::folder;
use crate::xds::{Admit, ListenError, Listener, Server, Store};

/// How many updates may queue between the source and the reconciler, which takes all at once. A
/// source that fills it waits, so that memory stays bounded.
const QUEUE: usize = 64;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Where the folder cannot be read or an address cannot be served; before anything has started.
pub async fn serve(options: Options) -> Result<()> {
    // Before anything else, so that a signal during the start is not lost.
    let stop = stopped().context("signals")?.shared();
    // The folder first: where there is none, nothing is bound or said to be served.
    let (updates, queued) = mpsc::channel(QUEUE);
    let follow = folder::watch(options.manifests.clone(), updates)?;
    let listeners = listeners(&options).await?;
    let metrics = admission::metrics::Metrics::default();
    let webhook = options.webhook.map(|webhook| webhook::start(webhook, metrics, stop.clone()));
    let webhook = webhook.transpose()?;

    let store = Arc::new(Store::default());
    let version = concat!("aether/", env!("CARGO_PKG_VERSION"));
    let server = Server::new(&store, version, admit());
    let reconciler = Reconciler::new(options.index, options.translate);
    capture::spawn(reconciler, queued, announced(store)).context("the reconciler's thread")?;
    let following = tokio::spawn(follow);

    server.run(listeners, stop).await;
    if let Some(webhook) = webhook {
        webhook.await.context("the webhook")?;
    }
    // The source ends, its channel closes, and with it the reconciler.
    following.abort();
    info!("stopped");
    Ok(())
}

/// Publishes snapshots, and says of the first that there is one.
fn announced(store: Arc<Store>) -> impl FnMut(Arc<crate::xds::Snapshot>) + Send + 'static {
    let mut first = true;
    move |snapshot| {
        if std::mem::take(&mut first) {
            info!(proxies = snapshot.nodes.len(), "the manifests are read; serving");
        }
        store.publish(snapshot);
    }
}

/// The addresses that were asked for, bound.
async fn listeners(options: &Options) -> Result<Vec<Listener>> {
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

/// Who is served, by node id. Node proxies come later, and are told so.
fn admit() -> Admit {
    Arc::new(|id| match id.parse::<NodeId>() {
        Ok(NodeId::Pod(_)) => Ok(()),
        Ok(NodeId::Node(_)) => Err(format!(
            "the node id {id:?} is that of a node proxy, which this version does not serve; sidecars call themselves pod/<namespace>/<name>"
        )),
        Err(error) => Err(error.to_string()),
    })
}

/// Done when the process is told to stop.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => info!("told to stop by SIGTERM"),
            _ = int.recv() => info!("told to stop by SIGINT"),
        }
    })
}
