//! Certificates of a cluster of the rig.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A certificate authority that lives as long as its value.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What a server presents.
#[derive(Debug, Clone)]
pub struct Serving {
    /// The certificate, PEM.
    pub certificate: String,
    /// The same, DER.
    pub der: Vec<u8>,
    /// Its private key, PEM (PKCS #8).
    pub key: String,
}

impl Authority {
    /// A new one of this name.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its certificate, DER.
    pub fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    /// Signs a new key for a server of these names and addresses.
    pub fn serving(&self, names: &[&str]) -> Result<Serving> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "server");
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Serving {
            certificate: certificate.pem(),
            der: certificate.der().to_vec(),
            key: key.serialize_pem(),
        })
    }
}
