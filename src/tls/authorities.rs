//! The authorities whose certificates are believed.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Why a file of authorities cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{option} {path}: {cause}; it must hold certificates of authorities, PEM, and nothing else"
)]
pub struct AuthoritiesError {
    option: &'static str,
    path: String,
    cause: String,
}

/// Authorities, one or more.
#[derive(Debug, Clone)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
}

impl Authorities {
    /// Reads them from the file that this option names.
    pub fn read(option: &'static str, path: &Path) -> Result<Self, AuthoritiesError> {
        let wrong = |cause: &dyn std::fmt::Display| AuthoritiesError {
            option,
            path: path.display().to_string(),
            cause: cause.to_string(),
        };
        let text = std::fs::read(path).map_err(|error| wrong(&error))?;
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| wrong(&error))?;
        if certificates.is_empty() {
            return Err(wrong(&"there is no certificate in it"));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            let parsed = x509_parser::parse_x509_certificate(certificate);
            let (_, parsed) = parsed.map_err(|error| wrong(&error))?;
            if !parsed.is_ca() {
                let subject = parsed.subject().to_string();
                return Err(wrong(&format!("{subject:?} is no certificate of an authority")));
            }
            roots.add(certificate.clone()).map_err(|error| wrong(&error))?;
        }
        Ok(Self { certificates, roots: Arc::new(roots) })
    }

    /// As a TLS library takes them.
    pub(super) fn roots(&self) -> Arc<RootCertStore> {
        self.roots.clone()
    }

    /// Whether these are the same, in the same order.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.certificates == other.certificates
    }
}
