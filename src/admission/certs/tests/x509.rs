//! Real certificates, the Secret's data, and the operations on the configuration.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

use super::*;
use crate::admission::certs::{bundle, secret, x509};

const HOST: &str = "aether-webhook.aether-system.svc";

fn real(made: Unix) -> Pair {
    x509::authority(made, &settings()).unwrap()
}

#[test]
fn a_certificate_is_trusted_by_its_authority_for_its_names_and_its_time() {
    let (one, other) = (real(BEGIN), real(BEGIN));
    let mut settings = settings();
    settings.names.extend(["127.0.0.1".to_owned(), "webhook.test".to_owned()]);
    let leaf = x509::sign(&one, BEGIN, &settings).unwrap();
    let chain: &[CertificateDer<'_>] = &leaf.certified.cert;
    let verify = |bundle: &[&Pair], name: &str, wall| {
        let bundle: Vec<_> = bundle.iter().map(|pair| pair.authority.clone()).collect();
        verify(chain, &bundle, name, wall)
    };
    for name in settings.names.iter().map(String::as_str) {
        assert_eq!(verify(&[&one], name, BEGIN), Ok(()), "{name}");
    }
    assert_eq!(verify(&[&other, &one], HOST, BEGIN + 599), Ok(()));
    // A clock that is behind by as much as is allowed.
    assert_eq!(verify(&[&one], HOST, BEGIN - 3600), Ok(()));
    for (bundle, name, wall) in [
        (&[][..], HOST, BEGIN),
        (&[&other][..], HOST, BEGIN),
        (&[&one][..], "other.svc", BEGIN),
        (&[&one][..], "127.0.0.2", BEGIN),
        (&[&one][..], HOST, BEGIN + 601),
        (&[&one][..], HOST, BEGIN - 3602),
    ] {
        assert!(verify(bundle, name, wall).is_err(), "{name} {wall}");
    }
    assert!(x509::verify(&[], std::slice::from_ref(&one.authority), HOST, BEGIN).is_err());
}

#[test]
fn no_certificate_outlives_its_authority() {
    let one = real(BEGIN);
    for (at, until) in [(0, 600), (3000, 3600), (3500, 3600)] {
        let leaf = x509::sign(&one, BEGIN + at, &settings()).unwrap();
        assert_eq!(leaf.until, BEGIN + until, "{at}");
    }
    // An authority that has expired is trusted by nobody, even while a certificate has not.
    let leaf = x509::sign(&one, BEGIN + 3599, &settings()).unwrap();
    let bundle = [one.authority];
    assert!(verify(&leaf.certified.cert, &bundle, HOST, BEGIN + 3601).is_err());
}

#[test]
fn authorities_of_ours_are_known_by_their_names_and_no_two_are_alike() {
    let (one, other) = (real(BEGIN).authority, real(BEGIN).authority);
    assert!(x509::is_ours(&one) && x509::is_ours(&other));
    assert_ne!(one.name, other.name);
    assert_eq!((one.from, one.until), (BEGIN - 3600, BEGIN + 3600));
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let foreign = params.self_signed(&key).unwrap();
    assert!(!x509::is_ours(&x509::read(foreign.der()).unwrap()));
}

#[test]
fn a_private_key_is_in_no_debug_output() {
    let one = real(BEGIN);
    let secret = one.key.pem().lines().nth(1).unwrap().to_owned();
    let authorities = Authorities { signing: Some(one.clone()), ..Authorities::default() };
    let contents = Contents { authorities: authorities.clone(), fresh: None, step: Step::Restore };
    let leaf = x509::sign(&one, BEGIN, &settings()).unwrap();
    let slot = Slot::default();
    slot.set(leaf.certified.clone());
    let said = format!(
        "{one:?} {:?} {:?} {leaf:?} {slot:?} {:?}",
        found(1, authorities),
        Write::Create(contents),
        serve::Serve::Sign(one.clone())
    );
    assert!(said.contains("Key(…)") && !said.contains(&secret), "{said}");
    assert!(!said.contains("PRIVATE"), "{said}");
}

#[test]
fn the_secret_reads_as_it_was_written() {
    let retired = |made, until| Retired { authority: real(made).authority, until };
    let mut all = Authorities {
        signing: Some(real(BEGIN)),
        next: Some(real(BEGIN + 5)),
        retired: vec![retired(BEGIN - 9, BEGIN + 7), retired(BEGIN - 8, BEGIN + 7)],
        rotation: Rotation { begun: Some("once more".into()), done: Some("ünce".into()) },
    };
    assert_eq!(secret::read(&secret::data(&all)), Ok(all.clone()));
    all.signing = None;
    all.retired.truncate(1);
    assert_eq!(secret::read(&secret::data(&all)), Ok(all.clone()));
    // And so does the bundle.
    let trusted: Vec<_> = all.all().cloned().collect();
    let text = bundle::text(&trusted).unwrap();
    assert_eq!(Bundle::new(text.as_bytes()).authorities, trusted);
    assert!(bundle::text(&[]).is_err());
    assert!(bundle::text(&[authority(1, BEGIN, &settings())]).is_err());
}

#[test]
fn a_secret_of_garbage_is_none_of_ours() {
    let good = secret::data(&Authorities {
        signing: Some(real(BEGIN)),
        next: Some(real(BEGIN)),
        ..Authorities::default()
    });
    let with = |key: &str, value: Option<&[u8]>| {
        let mut data = good.clone();
        match value {
            Some(value) => data.insert(key.to_owned(), ByteString(value.to_vec())),
            None => data.remove(key),
        };
        secret::read(&data).unwrap_err().to_string()
    };
    let key = good["next.key"].0.clone();
    let leaf = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap().cert.pem();
    let two = [good["tls.crt"].0.clone(), good["next.crt"].0.clone()].concat();
    let table: [(&str, Option<&[u8]>, &str); 11] = [
        ("rotation-done", Some(b"\xff"), "rotation-done is no text"),
        ("tls.key", None, "tls.key is missing"),
        ("next.crt", None, "next.crt is missing"),
        ("tls.crt", Some(b"garbage"), "tls.crt: it is no certificate: there is not exactly one"),
        ("tls.crt", Some(b"\xff\xfe"), "tls.crt: it is no certificate"),
        ("tls.crt", Some(two.as_slice()), "there is not exactly one"),
        ("tls.crt", Some(leaf.as_bytes()), "no certificate of an authority"),
        ("tls.key", Some(b"garbage"), "the key cannot be used"),
        ("tls.key", Some(&key), "the key is not that of the certificate"),
        ("ca.crt", Some(b""), "\"ca.crt\" is none of ours"),
        ("retired-soon.crt", Some(b""), "\"retired-soon.crt\" is none of ours"),
    ];
    for (name, value, words) in table {
        let said = with(name, value);
        assert!(said.contains(words), "{name}: {said}");
    }
    assert_eq!(secret::read(&BTreeMap::new()), Err(Fault::Empty));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Whatever bytes somebody writes into it: it is read, or not, and nothing falls over.
    #[test]
    fn any_data_can_be_looked_at(
        data in prop::collection::btree_map(
            prop_oneof![Just("tls.crt"), Just("tls.key"), Just("next.crt"), Just("retired-7-0.crt")],
            prop::collection::vec(any::<u8>(), 0..200),
            0..4,
        ),
    ) {
        let data: BTreeMap<_, _> =
            data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value))).collect();
        prop_assert!(secret::read(&data).is_err());
        for value in data.values() {
            prop_assert_eq!(Bundle::new(&value.0).authorities, Vec::new());
        }
    }
}

#[test]
fn the_operations_touch_the_bundles_of_our_entries_and_nothing_else() {
    let configuration = json!({
        "metadata": { "name": "aether", "resourceVersion": "7", "future": [1] },
        "webhooks": [
            { "name": "other.example", "clientConfig": { "url": "https://x", "caBundle": "eA==" } },
            { "name": "pods.aether.io", "clientConfig": { "service": { "name": "s" } }, "new": {} },
            { "name": "namespaces.aether.io", "clientConfig": { "caBundle": null } },
        ],
    });
    let one = real(BEGIN).authority;
    let text = bundle::text(std::slice::from_ref(&one)).unwrap();
    let entries = [(1, "pods.aether.io".to_owned()), (2, "namespaces.aether.io".to_owned())];
    let patched = |version: &str, entries: &[(usize, String)]| {
        let operations = bundle::operations(version, entries, &text);
        let mut object = configuration.clone();
        let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
        json_patch::patch(&mut object, &patch).map(|()| object)
    };
    let mut object = patched("7", &entries).unwrap();
    for index in [1, 2] {
        let bundle: ByteString =
            serde_json::from_value(object["webhooks"][index]["clientConfig"]["caBundle"].take())
                .unwrap();
        assert_eq!(Bundle::new(&bundle.0).authorities, std::slice::from_ref(&one));
    }
    let mut expected = configuration.clone();
    expected["webhooks"][1]["clientConfig"]["caBundle"] = Value::Null;
    assert_eq!(object, expected);
    // Another version, or another order: nothing is written.
    assert!(patched("8", &entries).is_err());
    assert!(patched("7", &[(0, "pods.aether.io".to_owned())]).is_err());
    assert!(patched("7", &[(3, "pods.aether.io".to_owned())]).is_err());
}

#[test]
fn a_configuration_is_read_by_the_names_of_its_entries() {
    let one = real(BEGIN).authority;
    let text = ByteString(bundle::text(std::slice::from_ref(&one)).unwrap().into_bytes());
    let entry = |name: &str, client: Value| {
        json!({
            "name": name, "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    };
    let object = json!({
        "metadata": { "uid": "u", "resourceVersion": "7", "generation": 3 },
        "webhooks": [
            entry("other.example", json!({ "url": "https://x" })),
            entry("namespaces.aether.io", json!({
                "service": { "name": "aether-webhook", "namespace": "aether-system" },
                "caBundle": text,
            })),
            entry("pods.aether.io", json!({ "url": "https://[::1]:9443/mutate" })),
        ],
    });
    let Configuration::Found { uid, version, generation, entries } =
        Configuration::of(serde_json::from_value(object).unwrap())
    else {
        panic!()
    };
    assert_eq!((uid.as_str(), version.as_str(), generation), ("u", "7", 3));
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.index, entry.host.as_deref(), entry.bundle.authorities.len()))
        .collect();
    assert_eq!(seen, [(1, Some(HOST), 1), (2, Some("::1"), 0)]);
}
