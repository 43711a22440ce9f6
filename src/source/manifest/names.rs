//! The names that Kubernetes allows. They become names of Envoy's resources and parts of domains,
//! so what an API server would refuse is refused here too.

use crate::index::ObjectKind;
use crate::model::is_dns_label;

/// Whether `text` is a DNS subdomain as Kubernetes checks it: at most 253 of `a-z`, `0-9`, `-` and
/// `.`, with a letter or digit at either end of each part. The length of a part is not bounded.
pub fn is_dns_subdomain(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 253
        && text.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
}

/// Whether an object of this kind may bear this name, and else what such a name looks like.
pub(super) fn check(kind: ObjectKind, name: &str) -> Result<(), &'static str> {
    const LABEL: &str =
        "a DNS label: at most 63 of a-z, 0-9 and '-', with a letter or digit first and last";
    const SUBDOMAIN: &str = "a DNS name in lower case: at most 253 of a-z, 0-9, '-' and '.', with a letter or digit first and last in each part";
    match kind {
        ObjectKind::Namespace | ObjectKind::Service if !is_dns_label(name) => Err(LABEL),
        _ if !is_dns_subdomain(name) => Err(SUBDOMAIN),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subdomain_ends_at_253() {
        let longest = format!("{}.{}", "a".repeat(100), "b".repeat(152));
        assert_eq!(longest.len(), 253);
        assert!(is_dns_subdomain(&longest));
        assert!(!is_dns_subdomain(&format!("{longest}b")));
    }

    #[test]
    fn names_are_those_of_kubernetes() {
        for good in ["a", "0", "web-0", "web.0", "a-b.c-d"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for wrong in
            ["", ".", "a.", ".a", "a..b", "A", "a_b", "-a", "a-", "a.-b", "ä", "a/b", "a b"]
        {
            assert!(!is_dns_subdomain(wrong), "{wrong}");
        }
        assert!(check(ObjectKind::Pod, "web.0").is_ok());
        assert!(check(ObjectKind::Service, "web.0").is_err());
        assert!(check(ObjectKind::Namespace, "web.0").is_err());
    }
}
