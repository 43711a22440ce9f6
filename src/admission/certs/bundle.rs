//! The webhook configuration as far as it is ours to write: the bundles of its two entries.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use serde_json::{Value, json};

use super::authority::{Authority, Der};
use super::x509::{self, X509Error};
use crate::admission::Entry as Path;

/// The configuration as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configuration {
    /// It could not be read, for this reason.
    Unknown(String),
    /// There is none.
    Absent,
    /// This is it.
    Found {
        /// Its uid.
        uid: String,
        /// Its resourceVersion.
        version: String,
        /// Rises by one with each change of what it says.
        generation: i64,
        /// Its entries of our names.
        entries: Vec<Entry>,
    },
}

/// An entry of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands among all entries.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The host that the API server calls.
    pub host: Option<String>,
    /// What it trusts.
    pub bundle: Bundle,
}

/// A `caBundle`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle {
    /// The authorities in it; none where it cannot be read.
    pub authorities: Vec<Authority>,
}

impl Bundle {
    /// Reads one. What is no certificate in it costs the whole.
    pub fn new(pem: &[u8]) -> Self {
        Self { authorities: x509::read_all(pem).unwrap_or_default() }
    }

    /// The certificates.
    pub fn ders(&self) -> BTreeSet<Der> {
        self.authorities.iter().map(|authority| authority.der.clone()).collect()
    }
}

/// The text of the bundle that holds these.
///
/// # Errors
/// Where it could not be read back as just that: no such text may ever be written.
pub(super) fn text(trusted: &[Authority]) -> Result<String, X509Error> {
    let pem: String = trusted.iter().map(x509::pem).collect();
    if trusted.is_empty() || x509::read_all(pem.as_bytes())? != trusted {
        return Err(X509Error::Unreadable("the bundle does not read as what it holds".to_owned()));
    }
    Ok(pem)
}

/// The operations that give these entries this bundle, and change nothing else: they fail where an
/// entry is not the one that was read, or the object not the version.
pub(super) fn operations(version: &str, entries: &[(usize, String)], pem: &str) -> Value {
    let mut all = vec![json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": version,
    })];
    let bundle = ByteString(pem.as_bytes().to_vec());
    for (index, name) in entries {
        let entry = format!("/webhooks/{index}");
        all.push(json!({ "op": "test", "path": format!("{entry}/name"), "value": name }));
        let path = format!("{entry}/clientConfig/caBundle");
        all.push(json!({ "op": "add", "path": path, "value": bundle }));
    }
    Value::Array(all)
}

impl Configuration {
    /// Whether any entry trusts an authority.
    pub(super) fn trusts(&self, der: &Der) -> bool {
        let Self::Found { entries, .. } = self else { return false };
        let mut all = entries.iter().flat_map(|entry| &entry.bundle.authorities);
        all.any(|authority| authority.der == *der)
    }

    /// What an object says.
    pub(super) fn of(object: MutatingWebhookConfiguration) -> Self {
        let metadata = object.metadata;
        let entries = object.webhooks.into_iter().flatten().enumerate();
        let ours =
            entries.filter(|(_, entry)| Path::ALL.iter().any(|ours| ours.name() == entry.name));
        let entries = ours.map(|(index, entry)| {
            let client = entry.client_config;
            let service =
                client.service.map(|service| format!("{}.{}.svc", service.name, service.namespace));
            let url = client.url.and_then(|url| {
                let host = url.parse::<http::Uri>().ok()?.host()?.to_owned();
                Some(host.trim_matches(['[', ']']).to_owned())
            });
            let bundle = Bundle::new(&client.ca_bundle.unwrap_or_default().0);
            Entry { index, name: entry.name, host: url.or(service), bundle }
        });
        Self::Found {
            entries: entries.collect(),
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
        }
    }
}
