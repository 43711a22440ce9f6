//! The HTTPS server: what the API server calls.

mod handler;
mod limits;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::{RustlsConfig, from_tcp_rustls};
use hyper_util::rt::TokioTimer;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;

pub use handler::Webhook;
pub use limits::Limits;

/// How long a connection may take for its handshake, and then for its first request.
const FIRST: Duration = Duration::from_secs(10);
/// How long the requests that are being answered have, once the server is stopped: longer than any
/// may take.
const LAST: Duration = Duration::from_secs(10);
/// How often a quiet HTTP/2 connection is asked whether its peer still lives, and for how long.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// The TLS settings for a certificate that may change at any time.
///
/// # Errors
/// Where the crypto provider has no protocol version in common with us, which none lacks.
pub fn tls(certificate: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves until `stop`, then for `drain` more as before, and then ends, with the requests that are
/// being answered.
///
/// The API server goes on calling a replica that ends until its Service has forgotten it; whoever
/// closed at once would cost each of these pods the failure policy.
///
/// # Errors
/// Where the listener cannot be served.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    webhook: Arc<Webhook>,
    stop: impl Future<Output = ()> + Send + 'static,
    drain: Duration,
) -> io::Result<()> {
    let handle: Handle<SocketAddr> = Handle::new();
    let stopping = handle.clone();
    let stopping = tokio::spawn(async move {
        stop.await;
        tokio::time::sleep(drain).await;
        stopping.graceful_shutdown(Some(LAST));
    });
    let mut server = from_tcp_rustls(listener, RustlsConfig::from_config(tls))?
        .map(|acceptor| acceptor.handshake_timeout(FIRST))
        .first_request_timeout(FIRST)
        .accept_error_handler(|peer, error| {
            tracing::debug!(?peer, %error, "a connection to the webhook failed");
        })
        .handle(handle);
    let http = server.http_builder();
    http.http1().timer(TokioTimer::new()).header_read_timeout(FIRST);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(PING.0).keep_alive_timeout(PING.1);
    let served = server.serve(webhook.router().into_make_service()).await;
    stopping.abort();
    served
}
