//! Files of TLS, good and bad, and identities.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use super::*;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key for these URIs, valid until so many seconds from now.
fn signed(by: &Issuer, uris: &[&str], seconds: i64) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::default();
    params.subject_alt_names =
        uris.iter().map(|&uri| SanType::URI(uri.try_into().unwrap())).collect();
    let until = i64::try_from(unix_now()).unwrap() + seconds;
    params.not_before = time::OffsetDateTime::from_unix_timestamp(until - 100_000).unwrap();
    params.not_after = time::OffsetDateTime::from_unix_timestamp(until).unwrap();
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap(), key)
}

fn files(folder: &Path) -> MutualFiles {
    let options = Options { certificate: "--the-cert", key: "--the-key" };
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let pair = Files { options, certificate, key };
    MutualFiles { pair, option: "--the-ca", authorities: folder.join("ca.crt") }
}

#[test]
fn an_identity_is_one_spiffe_id_of_a_workload() {
    let by = authority();
    let said = |uris: &[&str]| {
        let identity = identity(signed(&by, uris, 1000).0.der());
        identity.map_or_else(|error| error.to_string(), |identity| identity.id.to_string())
    };
    for (uris, expected) in [
        (&["spiffe://td/ns/shop/sa/cart"][..], "spiffe://td/ns/shop/sa/cart"),
        (&["spiffe://TD/ns/shop/sa/cart"], "spiffe://td/ns/shop/sa/cart"),
        (&[], "it has no SPIFFE ID"),
        (&["https://td/a"], "is no SPIFFE ID"),
        (&["spiffe://td/a", "spiffe://td/b"], "it has 2 URIs"),
        (&["spiffe://td/a", "https://td/b"], "it has 2 URIs"),
        (&["spiffe://td/../a"], "is no SPIFFE ID"),
    ] {
        assert!(said(uris).contains(expected), "{uris:?}: {}", said(uris));
    }
    assert_eq!(identity(by.der()), Err(IdentityError::Authority));
    assert!(matches!(identity(b"garbage"), Err(IdentityError::Unreadable(_))));
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let by = authority();
    let (certificate, key) = signed(&by, &["spiffe://td/plane"], 1000);
    let (expired, its_key) = signed(&by, &[], -5);
    let (pem, key, ca) = (certificate.pem(), key.serialize_pem(), by.pem());
    let table = [
        (&*pem, &*key, "", "--the-ca", "there is no certificate in it"),
        (&*pem, &*key, "garbage", "--the-ca", "there is no certificate in it"),
        (&*pem, &*key, &*pem, "--the-ca", "no certificate of an authority"),
        (&*pem, &*its_key.serialize_pem(), &*ca, "--the-key", "is not the key of"),
        (&*pem, "garbage", &*ca, "--the-key", "it must hold the private key"),
        ("", &*key, &*ca, "--the-cert", "there is no certificate in it"),
        (&*expired.pem(), &*its_key.serialize_pem(), &*ca, "--the-cert", "has expired"),
    ];
    for (certificate, key, ca, option, words) in table {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", ca)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let said = files(folder.path()).read(&[b"h2"], unix_now()).unwrap_err().to_string();
        assert!(said.contains(option) && said.contains(words), "{words}: {said}");
        assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
        assert!(!said.contains("BEGIN"), "nothing is quoted: {said}");
    }
    let nowhere = files(Path::new("/nowhere")).read(&[b"h2"], unix_now()).unwrap_err();
    assert!(nowhere.to_string().contains("/nowhere/tls.crt"), "{nowhere}");
}

#[test]
fn good_files_are_read_and_a_change_of_any_is_seen() {
    let (by, other) = (authority(), authority());
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let read = || files(folder.path()).read(&[b"h2"], unix_now()).unwrap();
    let (certificate, key) = signed(&by, &["spiffe://td/plane"], 1000);
    put("tls.crt", &certificate.pem());
    put("tls.key", &key.serialize_pem());
    put("ca.crt", &by.pem());
    let first = read();
    assert_eq!(first.trust_domain(), Some("td"));
    assert!(first.until() > unix_now() && first.same(&read()));
    put("ca.crt", &format!("{}{}", by.pem(), other.pem()));
    assert!(!first.same(&read()));
    put("ca.crt", &by.pem());
    let (certificate, key) = signed(&by, &[], 1000);
    put("tls.crt", &certificate.pem());
    put("tls.key", &key.serialize_pem());
    assert!(!first.same(&read()) && read().trust_domain().is_none());
}
