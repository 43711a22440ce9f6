//! The HTTP server.

use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::TokioTimer;
use tokio_util::sync::CancellationToken;

use super::routes::router;
use super::{Metrics, Pages};
use crate::health::Health;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(5);

/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 16 * 1024;

/// How long answers under way may take once the process stops.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be listened on: {cause}; {}", way_out(cause))]
pub struct BindError {
    address: SocketAddr,
    cause: std::io::Error,
}

fn way_out(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        std::io::ErrorKind::AddrInUse => "end what listens there, or choose another port",
        std::io::ErrorKind::PermissionDenied => "choose a port of 1024 or more",
        _ => "choose an address of this machine",
    }
}

/// The admin server, bound and not yet serving.
#[derive(Debug)]
pub struct Admin {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl Admin {
    /// Binds an address; port 0 takes any that is free.
    ///
    /// # Errors
    /// Where the system gives no such address.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound().map_err(|cause| BindError { address, cause })
    }

    /// The address that was bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// Where accepting connections ends for good.
    pub async fn run(
        self,
        health: Health,
        metrics: Metrics,
        pages: Pages,
        stop: CancellationToken,
    ) -> std::io::Result<()> {
        let handle = axum_server::Handle::new();
        let mut server = axum_server::from_tcp(self.listener)?.handle(handle.clone());
        server
            .http_builder()
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(LARGEST_HEAD);
        let app = router(health, metrics, pages).into_make_service();
        let serving = server.serve(app);
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => return served,
            () = stop.cancelled() => handle.graceful_shutdown(Some(LAST_ANSWERS)),
        }
        serving.await
    }
}
