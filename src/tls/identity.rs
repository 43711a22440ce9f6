//! The SPIFFE ID that a certificate bears.

use spiffe::SpiffeId;
use x509_parser::extensions::GeneralName;

use super::Unix;

/// Why a certificate proves no identity. The rules are those of the X.509-SVID document of SPIFFE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It is no certificate.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is one that signs others.
    #[error("it is the certificate of an authority, not of a workload")]
    Authority,
    /// There is none.
    #[error("it has no SPIFFE ID: one URI among its subject alternative names, spiffe://…")]
    None,
    /// There are several.
    #[error("it has {0} URIs among its subject alternative names, where a SPIFFE ID stands alone")]
    Several(usize),
    /// It is no SPIFFE ID.
    #[error("{uri:?} in it is no SPIFFE ID: {cause}")]
    Wrong {
        /// The URI.
        uri: String,
        /// Why.
        cause: String,
    },
}

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The SPIFFE ID.
    pub id: SpiffeId,
    /// Until when the certificate is valid.
    pub until: Unix,
}

/// The identity in a certificate (DER). Whether it is to be believed is not looked at.
pub fn identity(certificate: &[u8]) -> Result<Identity, IdentityError> {
    let unreadable = |error: &dyn std::fmt::Display| IdentityError::Unreadable(error.to_string());
    let (_, certificate) =
        x509_parser::parse_x509_certificate(certificate).map_err(|error| unreadable(&error))?;
    if certificate.is_ca() {
        return Err(IdentityError::Authority);
    }
    let until = Unix::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
    let names = certificate.subject_alternative_name().map_err(|error| unreadable(&error))?;
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let uris: Vec<&str> = names
        .filter_map(|name| if let GeneralName::URI(uri) = name { Some(*uri) } else { None })
        .collect();
    match uris.as_slice() {
        [] => Err(IdentityError::None),
        [uri] => match SpiffeId::new(uri) {
            Ok(id) => Ok(Identity { id, until }),
            Err(error) => {
                Err(IdentityError::Wrong { uri: (*uri).to_owned(), cause: error.to_string() })
            }
        },
        several => Err(IdentityError::Several(several.len())),
    }
}
