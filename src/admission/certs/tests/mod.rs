#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod asked;
mod files;
mod histories;
mod plans;
mod world;
mod x509;

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::leader::Boot;

/// Small times, so that a history holds many lives.
fn settings() -> Settings {
    Settings {
        namespace: "aether-system".to_owned(),
        secret: "aether-webhook-ca".to_owned(),
        configuration: "aether".to_owned(),
        names: Settings::service_names("aether-webhook", "aether-system", "cluster.local"),
        certificate: Duration::from_mins(10),
        authority: Duration::from_hours(1),
        overlap: Duration::from_mins(1),
    }
}

/// The time at which histories begin.
const BEGIN: Unix = 1_800_000_000;

fn now(seconds: u64) -> Now {
    Now { wall: BEGIN + seconds, boot: Boot(Duration::from_secs(1000 + seconds)) }
}

/// An authority without a certificate, made at this time.
fn authority(number: u32, made: Unix, settings: &Settings) -> Authority {
    Authority {
        der: number.to_be_bytes().as_slice().into(),
        name: format!("O=aether.io, CN=aether webhook authority {number}").into(),
        from: made - Settings::backdate(),
        until: made + settings.authority.as_secs(),
    }
}

fn pair(number: u32, made: Unix, settings: &Settings) -> Pair {
    Pair { authority: authority(number, made, settings), key: Key::new("secret") }
}

fn found(version: u64, contents: Authorities) -> Secret {
    let (uid, version) = ("u".to_owned(), version.to_string());
    Secret::Found { uid, version, immutable: false, asked: None, contents: Ok(contents) }
}

/// A configuration whose two entries both trust these.
fn trusting(generation: i64, authorities: &[Authority]) -> Configuration {
    let entry = |index, name: &str| Entry {
        index,
        name: name.to_owned(),
        host: Some("aether-webhook.aether-system.svc".to_owned()),
        bundle: Bundle { authorities: authorities.to_vec() },
    };
    Configuration::Found {
        uid: "c".to_owned(),
        version: generation.to_string(),
        generation,
        entries: vec![entry(0, "pods.aether.io"), entry(1, "namespaces.aether.io")],
    }
}

fn ders(authorities: &[Authority]) -> BTreeSet<Der> {
    authorities.iter().map(|authority| authority.der.clone()).collect()
}
