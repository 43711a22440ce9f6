//! The resolver as a process.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::{admin, stopped};
use crate::admin::{Admin, Metrics, Pages};
use crate::cli::mesh_dns::Options;
use crate::dns::{self, Resolver};
use crate::health::Health;

/// Resolves until SIGTERM or SIGINT, and answers then what has come already.
///
/// # Errors
/// Where it cannot start.
pub async fn resolve(options: Options) -> Result<()> {
    let stop = stopped().context("signals")?;
    let (health, metrics) = (Health::default(), Metrics::default());
    metrics.add_health(&health);
    let counted = Arc::new(dns::Metrics::new());
    metrics.register(|registry| counted.register(registry));

    let admin = options.admin.map(Admin::bind).transpose().context("--metrics-address")?;
    let resolver = Resolver::start(&options.resolver, counted, health.part("names"))?;
    let ended = CancellationToken::new();
    let admin = admin.map(|admin| {
        info!(address = %admin.address(), "health and metrics on HTTP");
        admin::serve(admin, health.clone(), metrics, Pages::default(), ended.clone())
    });
    stop.await;
    health.drain();
    resolver.stop().await;
    ended.cancel();
    if let Some(admin) = admin {
        admin.await.context("health and metrics")?;
    }
    info!("stopped");
    Ok(())
}
