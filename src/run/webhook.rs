//! The webhook, wired: its certificate, its address, its server.

use std::net::TcpListener;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::task::JoinHandle;
use tracing::{error, info};

use crate::admission::metrics::Metrics;
use crate::admission::server::{self, Limits, Webhook};
use crate::cli::webhook::{Certificate, Options};
use crate::health::Health;

/// Binds the webhook and serves it until `stop`, and its drain after that.
///
/// # Errors
/// Where its certificate cannot be had or its address cannot be bound; before anything is served.
pub fn start(
    options: Options,
    metrics: Metrics,
    health: &Health,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<()>> {
    let certificate = certificate(&options.certificate)?;
    let tls = server::tls(certificate).context("the webhook's TLS")?;
    let listener = TcpListener::bind(options.address)
        .with_context(|| format!("--webhook-address: {} cannot be bound", options.address))?;
    let address = listener.local_addr().unwrap_or(options.address);
    info!(%address, gate = options.settings.gate.is_some(), "the webhook on HTTPS");
    // Of its own: a webhook that cannot serve takes no proxy's configuration away.
    let part = health.apart("webhook");
    part.ready();
    let webhook = Arc::new(Webhook::new(options.settings, metrics, Limits::default()));
    Ok(tokio::spawn(async move {
        let served = server::serve(listener, tls, webhook, stop, options.drain).await;
        if let Err(error) = served {
            error!("the webhook ended: {error}");
            part.waiting(format!("it ended: {error}"));
        }
    }))
}

/// The certificate, as a value that answers each handshake.
fn certificate(certificate: &Certificate) -> Result<Arc<dyn ResolvesServerCert>> {
    let Certificate::Files { cert, key } = certificate else {
        bail!(
            "--webhook-cert-mode builtin keeps its authority in a Secret of a Kubernetes API \
             server, which there is none here: use --webhook-cert-mode files with --webhook-cert \
             and --webhook-key"
        );
    };
    let chain =
        CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.with_context(|| format!("--webhook-cert {}", cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("--webhook-key {}", key.display()))?;
    let key = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .context("--webhook-cert and --webhook-key")?;
    Ok(Arc::new(SingleCertAndKey::from(key)))
}
