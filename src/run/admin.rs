//! Health and metrics: where they are served.

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::admin::{Admin, Metrics, Pages};
use crate::cli::serve::AdminAddress;
use crate::health::Health;

/// Serves it until `ended`.
pub(super) fn serve(
    admin: Admin,
    health: Health,
    metrics: Metrics,
    pages: Pages,
    ended: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = admin.run(health, metrics, pages, ended).await {
            warn!(%error, "health and metrics are served no more");
        }
    })
}

/// The admin server that was asked for, bound.
pub(super) fn bind(address: AdminAddress) -> Result<Option<Admin>> {
    let (address, required) = match address {
        AdminAddress::Off => return Ok(None),
        AdminAddress::Required(address) => (address, true),
        AdminAddress::IfPossible(address) => (address, false),
    };
    match Admin::bind(address) {
        Ok(admin) => {
            info!(address = %admin.address(), "health and metrics on HTTP");
            Ok(Some(admin))
        }
        Err(error) if required => Err(error).context("--admin-address"),
        Err(error) => {
            warn!(
                "{error}; no health and metrics (--admin-address names another address, or none)"
            );
            Ok(None)
        }
    }
}
