//! The resolver as a process.

use anyhow::{Context, Result};
use tracing::info;

use super::stopped;
use crate::dns::{Options, Resolver};

/// Resolves until SIGTERM or SIGINT, and answers then what has come already.
///
/// # Errors
/// Where it cannot start.
pub async fn resolve(options: Options) -> Result<()> {
    let stop = stopped().context("signals")?;
    let resolver = Resolver::start(options).await?;
    stop.await;
    resolver.stop().await;
    info!("stopped");
    Ok(())
}
