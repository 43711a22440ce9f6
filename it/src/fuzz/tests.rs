//! A bounded run of what the fuzz targets do: mutations of what is valid, and any bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use envoy_types::pb::google::rpc::Status;
use fastrand::Rng;
use prost::Message;

use super::requests::{NODE, THREAD};
use super::{Requests, manifests};

/// How much more memory than at the start a run may take, in KiB.
const MEMORY: usize = 512 << 10;
/// The longest input.
const LONGEST: usize = 32 << 10;
/// How long one input may take.
const SLOW: Duration = Duration::from_secs(5);

/// How long each run goes on.
fn time() -> Duration {
    Duration::from_secs(if std::env::var_os("AETHER_IT_LONG").is_some() { 300 } else { 5 })
}

/// Something that resembles one of the seeds, or nothing.
fn input(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    if rng.u8(..8) == 0 {
        return (0..rng.usize(..300)).map(|_| rng.u8(..)).collect();
    }
    let mut bytes = rng.choice(seeds).unwrap().clone();
    for _ in 0..rng.usize(..6) {
        let at = rng.usize(..=bytes.len());
        let end = rng.usize(at..=bytes.len().min(at + 64));
        match rng.u8(..6) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = bytes[at..end].repeat(rng.usize(1..64));
                bytes.splice(at..at, piece);
            }
            2 => {
                let other = rng.choice(seeds).unwrap();
                let from = rng.usize(..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            3 => bytes.insert(at, *rng.choice(b"\x00\xff\x7f\x80{}[]:-&*|>\n\"'#!%").unwrap()),
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
            _ => {}
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// The memory that this process has had at most, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Gives it inputs for a while; how many.
fn run(what: &str, seeds: &[Vec<u8>], mut take: impl FnMut(&[u8])) {
    let seed = std::env::var("AETHER_IT_FUZZ").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    let (begun, before) = (Instant::now(), peak());
    let mut count = 0;
    while begun.elapsed() < time() {
        let bytes = input(&mut rng, seeds);
        let start = Instant::now();
        let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| take(&bytes)));
        let (took, shown) = (start.elapsed(), bytes.escape_ascii());
        assert!(taken.is_ok(), "AETHER_IT_FUZZ={seed}, input {count}: {shown}");
        assert!(took < SLOW, "AETHER_IT_FUZZ={seed}, input {count} took {took:?}: {shown}");
        count += 1;
    }
    let more = peak() - before;
    println!("{what}: {count} inputs, {more} KiB more");
    assert!(more < MEMORY, "{what}, AETHER_IT_FUZZ={seed}: {more} KiB more");
    assert!(count > 100, "{what}: {count} inputs alone");
}

#[test]
fn any_manifest_is_read_or_refused() {
    let seeds = [
        "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec:\n  clusterIP: 10.0.0.1\n  ports:\n  \
         - {name: web, port: 80, appProtocol: http}\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: b\n",
        "apiVersion: v1\nkind: List\nitems:\n- &a\n  kind: Pod\n  apiVersion: v1\n  metadata: {name: \"é\", namespace: \
         b, annotations: {x: |\n    text\n    }}\n- *a\n",
        "{\"apiVersion\":\"discovery.k8s.io/v1\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"a-1\",\"namespace\
         \":\"b\",\"labels\":{\"kubernetes.io/service-name\":\"a\"}},\"addressType\":\"IPv4\",\"endpoints\":[{\
         \"addresses\":[\"10.1.1.1\"],\"conditions\":{\"ready\":true}}],\"ports\":[{\"name\":\"web\",\"port\":8080}]}",
    ];
    run("manifests", &seeds.map(|seed| seed.as_bytes().to_vec()), manifests);
}

#[test]
fn any_request_is_answered_or_refused() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // The server bears a panic of a stream, and must not have any.
        if std::thread::current().name().is_some_and(|name| name.starts_with(THREAD)) {
            PANICS.fetch_add(1, Relaxed);
        }
        before(info);
    }));
    let mut requests = Requests::start().unwrap();
    let mut answered = 0;
    run("requests", &streams(), |bytes| {
        answered += requests.send(bytes).unwrap();
        assert_eq!(PANICS.load(Relaxed), 0, "the server panicked");
    });
    assert!(answered > 10_000, "{answered} bytes alone were answered");
}

/// Streams that are valid: the two protocols, each with a few requests.
fn streams() -> Vec<Vec<u8>> {
    let node = || Some(Node { id: NODE.into(), ..Node::default() });
    let url = |kind: aether::xds::Kind| kind.type_url().to_owned();
    let refusal = || Some(Status { code: 3, message: "a: no".into(), ..Status::default() });
    let mut all = Vec::new();
    for kind in aether::xds::Kind::ALL {
        let delta = [
            DeltaDiscoveryRequest { node: node(), type_url: url(kind), ..Default::default() },
            DeltaDiscoveryRequest {
                type_url: url(kind),
                resource_names_subscribe: ["a", "x", "*"].map(str::to_owned).into(),
                resource_names_unsubscribe: vec!["b".into()],
                initial_resource_versions: [("a".into(), "0123456789abcdef".into())].into(),
                response_nonce: "1".into(),
                ..Default::default()
            },
            DeltaDiscoveryRequest {
                type_url: url(kind),
                response_nonce: "1".into(),
                error_detail: refusal(),
                ..Default::default()
            },
        ];
        all.push(stream(0, delta.iter().map(Message::encode_to_vec)));
        let sotw = [
            DiscoveryRequest {
                node: node(),
                type_url: url(kind),
                resource_names: vec!["a".into()],
                ..Default::default()
            },
            DiscoveryRequest {
                type_url: url(kind),
                resource_names: vec!["a".into(), "b".into()],
                response_nonce: "1".into(),
                error_detail: refusal(),
                ..Default::default()
            },
        ];
        all.push(stream(1, sotw.iter().map(Message::encode_to_vec)));
    }
    all
}

/// These messages, as an input.
fn stream(first: u8, messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = vec![first];
    for message in messages {
        bytes.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend(message);
    }
    bytes
}
