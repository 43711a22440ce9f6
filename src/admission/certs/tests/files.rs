//! A pair of files that changes under a server.

use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use super::*;
use crate::admission::certs::files::{self, Files, PairError};
use crate::health::{Health, State};

/// A pair, PEM.
struct Made {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

fn made(days: i64) -> Made {
    let mut params = rcgen::CertificateParams::new(vec!["webhook.test".to_owned()]).unwrap();
    params.not_before = time::OffsetDateTime::from_unix_timestamp(0).unwrap();
    let until = i64::try_from(unix_now()).unwrap() + days * 86_400;
    params.not_after = time::OffsetDateTime::from_unix_timestamp(until).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let der = certificate.der().clone();
    Made { certificate: certificate.pem(), key: key.serialize_pem(), der }
}

/// A folder as a kubelet mounts a Secret: links into a folder that is replaced whole.
struct Mounted {
    folder: TempDir,
    times: u32,
}

impl Mounted {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), times: 0 }
    }

    fn files(&self) -> Files {
        let path = |name: &str| self.folder.path().join(name);
        files::files(path("tls.crt"), path("tls.key"))
    }

    fn put(&mut self, certificate: &str, key: &str) {
        use std::os::unix::fs::symlink;
        let path = |name: &str| self.folder.path().join(name);
        self.times += 1;
        let data = format!("..data-{}", self.times);
        std::fs::create_dir(path(&data)).unwrap();
        std::fs::write(path(&data).join("tls.crt"), certificate).unwrap();
        std::fs::write(path(&data).join("tls.key"), key).unwrap();
        symlink(&data, path("..new")).unwrap();
        std::fs::rename(path("..new"), path("..data")).unwrap();
        if self.times == 1 {
            symlink("..data/tls.crt", path("tls.crt")).unwrap();
            symlink("..data/tls.key", path("tls.key")).unwrap();
        }
    }
}

#[test]
fn a_pair_that_cannot_be_presented_is_refused_with_the_file_and_the_reason() {
    let (one, other) = (made(1), made(1));
    let table = [
        (one.certificate.as_str(), other.key.as_str(), "is not the key of"),
        ("", one.key.as_str(), "there is no certificate in it"),
        ("garbage", one.key.as_str(), "there is no certificate in it"),
        (one.certificate.as_str(), "garbage", "--webhook-key"),
        (one.key.as_str(), one.certificate.as_str(), "--webhook-cert"),
    ];
    for (certificate, key, words) in table {
        let mut mounted = Mounted::new();
        mounted.put(certificate, key);
        let said = mounted.files().read(unix_now()).unwrap_err().to_string();
        assert!(said.contains(words) && said.contains("tls."), "{words}: {said}");
        // A key is quoted by nobody.
        assert!(!said.contains("PRIVATE") || key == "garbage", "{said}");
    }
    let expired = made(-1);
    let mut mounted = Mounted::new();
    mounted.put(&expired.certificate, &expired.key);
    let error = mounted.files().read(unix_now()).unwrap_err();
    assert!(matches!(error, PairError::Expired { .. }), "{error}");
    let error = files::files("/nowhere/a".into(), "/nowhere/b".into());
    assert!(error.read(unix_now()).unwrap_err().to_string().contains("/nowhere/a"));
}

#[tokio::test]
async fn a_new_pair_is_taken_and_a_broken_one_is_not() {
    let (first, second, third) = (made(1), made(2), made(3));
    let mut mounted = Mounted::new();
    mounted.put(&first.certificate, &first.key);
    let (slot, health, metrics) =
        (Arc::new(Slot::default()), Health::default(), Metrics::default());
    let part = health.apart("webhook");
    let pair = mounted.files();
    let read = pair.read(unix_now()).unwrap();
    let follow = files::follow(pair, read, slot.clone(), part.clone(), metrics.clone());
    let following = tokio::spawn(follow);
    let presents = async |made: &Made, state: fn(&State) -> bool| {
        let begun = Instant::now();
        loop {
            let der = slot.get().map(|certified| certified.cert[0].clone());
            if der.as_ref() == Some(&made.der) && state(&part.state()) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", part.state());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ready: fn(&State) -> bool = |state| *state == State::Ready;
    let amiss: fn(&State) -> bool =
        |state| matches!(state, State::Degraded(why) if why.contains("is not the key of"));
    let empty: fn(&State) -> bool =
        |state| matches!(state, State::Degraded(why) if why.contains("no certificate in it"));
    presents(&first, ready).await;
    mounted.put(&second.certificate, &second.key);
    presents(&second, ready).await;
    // A key of another, then nothing at all: what was good stays.
    mounted.put(&third.certificate, &first.key);
    presents(&second, amiss).await;
    mounted.put("", "");
    presents(&second, empty).await;
    mounted.put(&third.certificate, &third.key);
    presents(&third, ready).await;
    following.abort();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("webhook_certificate_reloads_total{outcome=\"taken\"} 2"), "{text}");
    assert!(text.contains("webhook_certificate_reloads_total{outcome=\"broken\"} 2"), "{text}");
    assert!(text.contains("webhook_ready 1"), "{text}");
}
