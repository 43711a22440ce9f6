//! The addresses that are served.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;

use super::peer::Tls;
use super::socket::{Socket, SocketError};

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A TCP address.
    #[error("xDS cannot listen on {address}{}", hint(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A Unix socket.
    #[error(transparent)]
    Unix(#[from] SocketError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (another process has the port: stop it, or choose another)",
        io::ErrorKind::AddrNotAvailable => " (no interface of this machine has the address)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need CAP_NET_BIND_SERVICE)",
        _ => "",
    }
}

/// An address that is served.
#[derive(Debug)]
pub enum Listener {
    /// TCP, in plain text.
    Tcp(TcpListener),
    /// TCP with TLS that demands certificates.
    Tls(TcpListener, Tls),
    /// A Unix socket.
    Unix(Socket),
}

impl Listener {
    /// Binds a TCP address; port 0 chooses one.
    pub async fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        Ok(Self::Tcp(bind(address).await?))
    }

    /// Binds a TCP address for TLS; port 0 chooses one.
    pub async fn tls(address: SocketAddr, tls: Tls) -> Result<Self, ListenError> {
        Ok(Self::Tls(bind(address).await?, tls))
    }

    /// Binds a Unix socket, whose file gets this mode.
    pub async fn unix(path: &Path, mode: u32) -> Result<Self, ListenError> {
        Ok(Self::Unix(Socket::bind(path, mode).await?))
    }

    /// The TCP address that was bound.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) | Self::Tls(listener, _) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| ListenError::Tcp { address, source })
}
