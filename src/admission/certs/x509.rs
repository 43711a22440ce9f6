//! Certificates made, read, and checked as an API server checks them.

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

use super::authority::{Authority, Der, Key, Pair, Unix};
use super::settings::Settings;

/// The organisation in the name of every authority of ours.
const ORGANISATION: &str = "aether.io";
/// How its name begins; a number follows.
const NAME: &str = "aether webhook authority";

/// Why a certificate cannot be made, read or trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    /// It is no PEM, or no certificate.
    #[error("it is no certificate: {0}")]
    Unreadable(String),
    /// It is one of a server, say.
    #[error("{0:?} is no certificate of an authority")]
    NoAuthority(Arc<str>),
    /// The two are no pair.
    #[error("the key is not that of the certificate")]
    Mismatch,
    /// The key is of no kind that is known.
    #[error("the key cannot be used: {0}")]
    Key(String),
    /// It could not be made.
    #[error("a certificate could not be made: {0}")]
    Unmade(String),
    /// An API server would not trust it.
    #[error("{0}")]
    Untrusted(String),
}

/// A certificate for this replica, with its key.
#[derive(Clone)]
pub struct Leaf {
    /// What a TLS server presents.
    pub certified: Arc<CertifiedKey>,
    /// The authority that signed it.
    pub issuer: Der,
    /// Until when it is valid.
    pub until: Unix,
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("until", &self.until).finish_non_exhaustive()
    }
}

fn at(unix: Unix) -> Result<OffsetDateTime, X509Error> {
    let seconds = i64::try_from(unix).map_err(|error| X509Error::Unmade(error.to_string()))?;
    OffsetDateTime::from_unix_timestamp(seconds)
        .map_err(|error| X509Error::Unmade(error.to_string()))
}

fn unmade(error: &rcgen::Error) -> X509Error {
    X509Error::Unmade(error.to_string())
}

/// A new authority. Its name is like no other's, so that nobody who looks for an issuer by its name
/// tries the wrong one.
pub(super) fn authority(wall: Unix, settings: &Settings) -> Result<Pair, X509Error> {
    let key = KeyPair::generate().map_err(|error| unmade(&error))?;
    let serial = serial(&key);
    // A common name has at most 64 bytes.
    let number: Vec<_> =
        serial.to_bytes().iter().skip(1).take(8).map(|byte| format!("{byte:02x}")).collect();
    let number = number.concat();
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, ORGANISATION);
    name.push(DnType::CommonName, format!("{NAME} {number}"));
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.serial_number = Some(serial);
    params.not_before = at(wall.saturating_sub(Settings::backdate()))?;
    params.not_after = at(wall.saturating_add(settings.authority.as_secs()))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let certificate = params.self_signed(&key).map_err(|error| unmade(&error))?;
    let authority = read(certificate.der())?;
    Ok(Pair { authority, key: Key::new(key.serialize_pem()) })
}

/// A number that no other key has: the beginning of the key itself.
fn serial(key: &KeyPair) -> SerialNumber {
    let bytes = key.public_key_raw().iter().skip(1).take(16).copied();
    // Positive, and of one length.
    SerialNumber::from(std::iter::once(1).chain(bytes).collect::<Vec<u8>>())
}

/// Reads the certificate of an authority.
pub(super) fn read(der: &[u8]) -> Result<Authority, X509Error> {
    let (rest, certificate) = x509_parser::parse_x509_certificate(der)
        .map_err(|error| X509Error::Unreadable(error.to_string()))?;
    if !rest.is_empty() {
        return Err(X509Error::Unreadable("something follows it".to_owned()));
    }
    let name: Arc<str> = certificate.subject().to_string().into();
    if !certificate.is_ca() {
        return Err(X509Error::NoAuthority(name));
    }
    let seconds = |time: i64| Unix::try_from(time).unwrap_or_default();
    let validity = certificate.validity();
    let from = seconds(validity.not_before.timestamp());
    let until = seconds(validity.not_after.timestamp());
    Ok(Authority { der: der.into(), name, from, until })
}

/// Whether an authority is one that was made here, by us or by another replica.
pub(super) fn is_ours(authority: &Authority) -> bool {
    let (begin, name) = (format!("CN={NAME} "), &authority.name);
    name.contains(&begin) && name.contains(&format!("O={ORGANISATION}"))
}

/// Reads all certificates of authorities in a PEM text.
pub(super) fn read_all(pem: &[u8]) -> Result<Vec<Authority>, X509Error> {
    let all = CertificateDer::pem_slice_iter(pem).map(|der| {
        let der = der.map_err(|error| X509Error::Unreadable(error.to_string()))?;
        read(&der)
    });
    all.collect()
}

/// The same as PEM.
pub(super) fn pem(authority: &Authority) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new("CERTIFICATE", authority.der.to_vec()), config)
}

/// Reads an authority and its key, and sees that they belong together.
pub(super) fn pair(certificate: &[u8], key: &str) -> Result<Pair, X509Error> {
    let mut all = read_all(certificate)?.into_iter();
    let (Some(authority), None) = (all.next(), all.next()) else {
        return Err(X509Error::Unreadable("there is not exactly one".to_owned()));
    };
    // A parser's words may quote what it reads, and a key is not to be quoted.
    let parsed =
        KeyPair::from_pem(key).map_err(|_| X509Error::Key("it is no PEM key".to_owned()))?;
    let (_, certificate) = x509_parser::parse_x509_certificate(&authority.der)
        .map_err(|error| X509Error::Unreadable(error.to_string()))?;
    if *certificate.public_key().subject_public_key.data != *parsed.public_key_raw() {
        return Err(X509Error::Mismatch);
    }
    Ok(Pair { authority, key: Key::new(key) })
}

/// Signs a certificate for this replica: for the names of the settings, and never longer than the
/// authority itself lives.
pub(super) fn sign(pair: &Pair, wall: Unix, settings: &Settings) -> Result<Leaf, X509Error> {
    let signer = KeyPair::from_pem(pair.key.pem())
        .map_err(|_| X509Error::Key("it is no PEM key".to_owned()))?;
    let issuer = CertificateDer::from(pair.authority.der.as_ref());
    let issuer = Issuer::from_ca_cert_der(&issuer, signer).map_err(|error| unmade(&error))?;
    let until = wall.saturating_add(settings.certificate.as_secs()).min(pair.authority.until);
    let from = wall.saturating_sub(Settings::backdate()).max(pair.authority.from);
    let mut params =
        CertificateParams::new(settings.names.clone()).map_err(|error| unmade(&error))?;
    params.distinguished_name = DistinguishedName::new();
    let name = settings.names.first().map(String::as_str).unwrap_or_default();
    // A common name has at most 64 bytes, and nobody reads it.
    params.distinguished_name.push(DnType::CommonName, name.get(..64).unwrap_or(name));
    params.not_before = at(from)?;
    params.not_after = at(until)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(|error| unmade(&error))?;
    params.serial_number = Some(serial(&key));
    let certificate = params.signed_by(&key, &issuer).map_err(|error| unmade(&error))?;
    let key = PrivateKeyDer::from(key);
    let provider = rustls::crypto::ring::default_provider();
    let certified = CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider)
        .map_err(|error| X509Error::Unmade(error.to_string()))?;
    Ok(Leaf { certified: Arc::new(certified), issuer: pair.authority.der.clone(), until })
}

/// Whether a server that presents this chain is trusted by whoever trusts this bundle and calls it
/// by this name. An API server looks at the dates of the authority too, which others do not.
///
/// # Errors
/// [`X509Error::Untrusted`], with the reason.
pub fn verify(
    chain: &[CertificateDer<'_>],
    bundle: &[Authority],
    name: &str,
    wall: Unix,
) -> Result<(), X509Error> {
    let untrusted = |error: &dyn fmt::Display| X509Error::Untrusted(error.to_string());
    let mut roots = RootCertStore::empty();
    for authority in bundle.iter().filter(|authority| authority.valid_at(wall)) {
        let der = CertificateDer::from(authority.der.to_vec());
        roots.add(der).map_err(|error| untrusted(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| untrusted(&error))?;
    let (leaf, between) =
        chain.split_first().ok_or_else(|| untrusted(&"there is no certificate"))?;
    let name = ServerName::try_from(name).map_err(|error| untrusted(&error))?;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(wall));
    let verified = verifier.verify_server_cert(leaf, between, &name, &[], time);
    verified.map(drop).map_err(|error| untrusted(&error))
}
