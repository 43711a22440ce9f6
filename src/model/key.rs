//! Keys: what a service and a pod are called across the mesh.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Whether `text` is a DNS label by RFC 1123: 1 to 63 of `a-z`, `0-9` and `-`, neither first nor
/// last a `-`. Kubernetes names of namespaces and Services are such labels, and so are mesh names.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There are not exactly two segments around one `/`.
    #[error("{0:?} is no key: write <namespace>/<name>, with both parts and nothing more")]
    Segments(String),
    /// A segment is no DNS label.
    #[error(
        "{part:?} in the key {key:?} is no DNS label: use at most 63 of a-z, 0-9 and '-', \
         with a letter or digit first and last"
    )]
    Label {
        /// The whole text.
        key: String,
        /// The segment at fault.
        part: String,
    },
}

/// Splits `<a>/<b>`, refusing a missing, empty or extra segment.
fn segments(text: &str) -> Result<(&str, &str), KeyError> {
    match text.split_once('/') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains('/') => Ok((a, b)),
        _ => Err(KeyError::Segments(text.to_owned())),
    }
}

/// `<namespace>/<name>`: a mesh service. The name is the mesh name, which an annotation may make
/// another than that of the Kubernetes Service behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The mesh name, one DNS label.
    pub name: Arc<str>,
}

impl ServiceKey {
    /// A key of parts that are known to be DNS labels.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for ServiceKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (namespace, name) = segments(text)?;
        for part in [namespace, name] {
            if !is_dns_label(part) {
                return Err(KeyError::Label { key: text.to_owned(), part: part.to_owned() });
            }
        }
        Ok(Self::new(namespace, name))
    }
}

/// `<namespace>/<name>`: a pod. Its name is a DNS subdomain, so it may hold dots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The pod's name.
    pub name: Arc<str>,
}

impl PodKey {
    /// A key of parts that Kubernetes accepted.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for PodKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (namespace, name) = segments(text)?;
        Ok(Self::new(namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_two_segments_and_no_more() {
        assert_eq!("shop/cart".parse(), Ok(ServiceKey::new("shop", "cart")));
        for wrong in ["", "/", "shop", "shop/", "/cart", "shop/cart/", "shop//cart", "a/b/c"] {
            assert_eq!(wrong.parse::<ServiceKey>(), Err(KeyError::Segments(wrong.to_owned())));
        }
        for wrong in ["Shop/cart", "shop/ca.rt", "shop/-cart", "shop/cart-", "shop/ca rt"] {
            assert!(matches!(wrong.parse::<ServiceKey>(), Err(KeyError::Label { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_label_ends_at_63() {
        assert!(is_dns_label(&"a".repeat(63)));
        assert!(!is_dns_label(&"a".repeat(64)));
        assert!(!is_dns_label(""));
        assert!(is_dns_label("0"));
    }

    #[test]
    fn a_pods_name_may_hold_dots() {
        assert_eq!("shop/web.0".parse(), Ok(PodKey::new("shop", "web.0")));
        assert!("shop".parse::<PodKey>().is_err());
    }
}
