//! Where objects come from.

use std::path::PathBuf;

use anyhow::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::Sender;
use tracing::info;

use crate::admin::Metrics;
use crate::cli::options::Objects;
use crate::health::Health;
use crate::source::kubernetes::Connection;
use crate::source::{Update, folder, kubernetes};

/// The source that was asked for: what follows it until it is dropped, and the API server that it is.
///
/// # Errors
/// Where the folder cannot be read, or no API server is known. That one is away is no error: the
/// source says so to `health`, and waits for it.
pub(super) async fn follow(
    objects: &Objects,
    updates: Sender<Update>,
    health: &Health,
    metrics: &Metrics,
) -> Result<(BoxFuture<'static, ()>, Option<Connection>)> {
    match objects {
        Objects::Folder(folder) => Ok((folder::watch(folder.clone(), updates)?.boxed(), None)),
        Objects::ApiServer { kubeconfig, context } => {
            let connection =
                kubernetes::connect(&access(kubeconfig.as_ref(), context.as_ref())).await?;
            info!(server = connection.server, "following the objects of the API server");
            let counts = kubernetes::Metrics::default();
            metrics.register(|registry| counts.register(registry));
            let part = health.part("source");
            let follow = kubernetes::follow(connection.clone(), updates, part, counts).boxed();
            Ok((follow, Some(connection)))
        }
    }
}

/// Everything there is, read once.
///
/// # Errors
/// Where the folder or the API server cannot be read.
pub(super) fn load(objects: &Objects) -> Result<Update> {
    match objects {
        Objects::Folder(folder) => Ok(folder::load(folder)?),
        Objects::ApiServer { kubeconfig, context } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let connection =
                    kubernetes::connect(&access(kubeconfig.as_ref(), context.as_ref())).await?;
                Ok(kubernetes::load(&connection).await?)
            })
        }
    }
}

fn access(kubeconfig: Option<&PathBuf>, context: Option<&String>) -> kubernetes::Access {
    kubernetes::Access { kubeconfig: kubeconfig.cloned(), context: context.cloned() }
}
