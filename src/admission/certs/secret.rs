//! The Secret, as data and as what it means.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;

use super::asked::Rotation;
use super::authority::{Authorities, Pair, Retired, Unix};
use super::x509::{self, X509Error};

/// Data keys of the authority that signs. They are those of a Secret of type `kubernetes.io/tls`,
/// so that one of that type does as well.
const SIGNING: (&str, &str) = ("tls.crt", "tls.key");
/// Data keys of the next one.
const NEXT: (&str, &str) = ("next.crt", "next.key");
/// Data keys of what was asked for by the annotation, begun and done.
const ROTATION: (&str, &str) = ("rotation-begun", "rotation-done");
/// Around the time until which a retired one is trusted, and its number among those of this time.
const RETIRED: (&str, &str) = ("retired-", ".crt");

/// The Secret as it was read.
// There is one at a time: a box for the large form would spare nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
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
        /// Whether nobody may change it; it can only be deleted.
        immutable: bool,
        /// What its annotation asks for.
        asked: Option<Arc<str>>,
        /// What it holds.
        contents: Result<Authorities, Fault>,
    },
}

/// What is wrong with the data of the Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Neither a signing authority nor a next one.
    #[error("it holds no authority")]
    Empty,
    /// A certificate without its key, or a key without its certificate.
    #[error("{0} is missing")]
    Half(&'static str),
    /// A value cannot be read.
    #[error("{key}: {cause}")]
    Value {
        /// The data key.
        key: String,
        /// Why.
        cause: X509Error,
    },
    /// It is no text.
    #[error("{0} is no text")]
    Text(String),
    /// A key that nobody here wrote.
    #[error("the key {0:?} is none of ours")]
    Foreign(String),
}

/// Reads the data of the Secret. All of it must be ours and whole: what was changed by another hand
/// is put back, not guessed at.
pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Result<Authorities, Fault> {
    let rotation = Rotation { begun: text(data, ROTATION.0)?, done: text(data, ROTATION.1)? };
    let (signing, next) = (pair(data, SIGNING)?, pair(data, NEXT)?);
    let mut authorities = Authorities { signing, next, retired: Vec::new(), rotation };
    if authorities.signing.is_none() && authorities.next.is_none() {
        return Err(Fault::Empty);
    }
    let own = [SIGNING.0, SIGNING.1, NEXT.0, NEXT.1, ROTATION.0, ROTATION.1];
    for (key, value) in data.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
        let middle = key.strip_prefix(RETIRED.0).and_then(|key| key.strip_suffix(RETIRED.1));
        let until = middle.and_then(|middle| middle.split('-').next()?.parse::<Unix>().ok());
        let until = until.ok_or_else(|| Fault::Foreign(key.clone()))?;
        let fault = |cause| Fault::Value { key: key.clone(), cause };
        for authority in x509::read_all(&value.0).map_err(fault)? {
            authorities.retired.push(Retired { authority, until });
        }
    }
    authorities.retired.sort_by_key(|retired| retired.until);
    Ok(authorities)
}

fn text(data: &BTreeMap<String, ByteString>, key: &str) -> Result<Option<Arc<str>>, Fault> {
    let Some(bytes) = data.get(key) else { return Ok(None) };
    let text = std::str::from_utf8(&bytes.0).map_err(|_| Fault::Text(key.to_owned()))?;
    Ok(Some(text.into()))
}

fn pair(
    data: &BTreeMap<String, ByteString>,
    (certificate, key): (&'static str, &'static str),
) -> Result<Option<Pair>, Fault> {
    match (data.get(certificate), data.get(key)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Fault::Half(certificate)),
        (Some(_), None) => Err(Fault::Half(key)),
        (Some(pem), Some(secret)) => {
            let no_text = |_| Fault::Value {
                key: key.to_owned(),
                cause: X509Error::Key("it is no text".to_owned()),
            };
            let secret = std::str::from_utf8(&secret.0).map_err(no_text)?;
            let fault = |cause| Fault::Value { key: certificate.to_owned(), cause };
            x509::pair(&pem.0, secret).map(Some).map_err(fault)
        }
    }
}

/// The data of the Secret that holds these.
pub(super) fn data(authorities: &Authorities) -> BTreeMap<String, ByteString> {
    let mut data = BTreeMap::new();
    let pairs = [(&authorities.signing, SIGNING), (&authorities.next, NEXT)];
    for (pair, (certificate, key)) in pairs {
        if let Some(pair) = pair {
            let pem = x509::pem(&pair.authority).into_bytes();
            data.insert(certificate.to_owned(), ByteString(pem));
            data.insert(key.to_owned(), ByteString(pair.key.pem().as_bytes().to_vec()));
        }
    }
    let Rotation { begun, done } = &authorities.rotation;
    for (text, key) in [(begun, ROTATION.0), (done, ROTATION.1)] {
        if let Some(text) = text {
            data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        }
    }
    for (number, retired) in authorities.retired.iter().enumerate() {
        let key = format!("{}{}-{number}{}", RETIRED.0, retired.until, RETIRED.1);
        data.insert(key, ByteString(x509::pem(&retired.authority).into_bytes()));
    }
    data
}
