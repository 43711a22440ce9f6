//! Waiting for an identity as a process.

use anyhow::{Context, Result};
use tracing::info;

use super::stopped;
use crate::identity::{self, Options};

/// Waits for an identity, until its timeout, SIGTERM or SIGINT.
///
/// # Errors
/// Where there is none by then.
pub async fn identity_ready(options: Options) -> Result<()> {
    let stop = stopped().context("signals")?;
    info!(socket = %options.socket.display(), timeout = ?options.timeout, "waiting for an identity");
    let identity = identity::wait(&options, stop).await?;
    info!(id = identity.id, holds = ?identity.holds, "the identity is there");
    Ok(())
}
