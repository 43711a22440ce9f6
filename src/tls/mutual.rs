//! A TLS server that demands certificates of its clients.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;

use super::authorities::{Authorities, AuthoritiesError};
use super::follow::Material;
use super::pair::{Files, Pair, PairError};
use super::{Unix, identity};

/// The files of such a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutualFiles {
    /// What it presents.
    pub pair: Files,
    /// The option that names the authorities of the clients.
    pub option: &'static str,
    /// Those, PEM.
    pub authorities: PathBuf,
}

/// Why they cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutualError {
    /// For the pair.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// For the authorities.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// They can be read, and the TLS library does not take them.
    #[error("TLS cannot be served with these files: {0}")]
    Tls(String),
}

/// What such a server works with.
#[derive(Debug, Clone)]
pub struct Mutual {
    pair: Pair,
    authorities: Authorities,
    trust_domain: Option<String>,
    config: Arc<ServerConfig>,
}

impl MutualFiles {
    /// Reads all of them. `alpn` are the application protocols that are spoken.
    pub fn read(&self, alpn: &[&[u8]], wall: Unix) -> Result<Mutual, MutualError> {
        let pair = self.pair.read(wall)?;
        let authorities = Authorities::read(self.option, &self.authorities)?;
        let tls = |error: &dyn std::fmt::Display| MutualError::Tls(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(authorities.roots(), provider.clone())
                .build()
                .map_err(|error| tls(&error))?;
        let certified = pair.certified();
        let own = certified.cert.first().and_then(|leaf| identity(leaf).ok());
        let trust_domain = own.map(|own| own.id.trust_domain_name().to_owned());
        let presented = Arc::new(SingleCertAndKey::from(certified));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| tls(&error))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(presented);
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        // A session that is resumed is not verified again: its certificate may have expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Mutual { pair, authorities, trust_domain, config: Arc::new(config) })
    }
}

impl Mutual {
    /// What the TLS library works with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// The trust domain of our own certificate, where that bears a SPIFFE ID.
    pub fn trust_domain(&self) -> Option<&str> {
        self.trust_domain.as_deref()
    }
}

impl Material for Mutual {
    fn until(&self) -> Unix {
        self.pair.until()
    }

    fn same(&self, other: &Self) -> bool {
        self.pair.same(&other.pair) && self.authorities.same(&other.authorities)
    }
}
