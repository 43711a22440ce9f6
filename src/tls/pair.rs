//! A certificate and its private key, as a pair of files.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::Unix;
use super::follow::Material;

/// Why a pair cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// The certificate cannot be read.
    #[error("{option} {path}: {cause}; it must hold the chain of certificates, PEM")]
    Certificate {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// The key cannot be read.
    #[error("{option} {path}: {cause}; it must hold the private key, PEM")]
    Key {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// They do not belong together.
    #[error(
        "{} {key} is not the key of {} {certificate}: {cause}; name the two files of one pair",
        options.key,
        options.certificate
    )]
    Mismatch {
        /// The options that name them.
        options: Options,
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
        /// What the TLS library says.
        cause: String,
    },
    /// Its time is over.
    #[error("{option} {path} has expired, at {until} seconds since 1970: renew it")]
    Expired {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// When.
        until: Unix,
    },
}

/// The options that name the files of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// That of the certificate, as in `--webhook-cert`.
    pub certificate: &'static str,
    /// That of the key.
    pub key: &'static str,
}

/// A pair of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Which options named them.
    pub options: Options,
    /// The chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// A pair that can be presented.
#[derive(Debug, Clone)]
pub struct Pair {
    certified: Arc<CertifiedKey>,
    until: Unix,
}

impl Pair {
    /// What a TLS server presents.
    pub fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }
}

impl Material for Pair {
    fn until(&self) -> Unix {
        self.until
    }

    /// A certificate stands for one key.
    fn same(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }
}

impl Files {
    /// Reads the pair, and sees that it can be presented at this time.
    pub fn read(&self, wall: Unix) -> Result<Pair, PairError> {
        let path = self.certificate.display().to_string();
        let option = self.options.certificate;
        let certificate = |cause: &dyn std::fmt::Display| PairError::Certificate {
            option,
            path: path.clone(),
            cause: cause.to_string(),
        };
        let text = std::fs::read(&self.certificate).map_err(|error| certificate(&error))?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| certificate(&error))?;
        let leaf = chain.first().ok_or_else(|| certificate(&"there is no certificate in it"))?;
        let (_, leaf) =
            x509_parser::parse_x509_certificate(leaf).map_err(|error| certificate(&error))?;
        let until = Unix::try_from(leaf.validity().not_after.timestamp()).unwrap_or_default();
        if until <= wall {
            return Err(PairError::Expired { option, path, until });
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| PairError::Key {
            option: self.options.key,
            path: self.key.display().to_string(),
            cause: error.to_string(),
        })?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain.clone(), key, &provider);
        let certified = certified.map_err(|error| PairError::Mismatch {
            options: self.options,
            certificate: path.clone(),
            key: self.key.display().to_string(),
            cause: error.to_string(),
        })?;
        Ok(Pair { certified: Arc::new(certified), until })
    }
}
