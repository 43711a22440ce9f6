//! The rig proves itself: real SVIDs from a real agent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::eventually;
use it::net::{Net, Pod};
use it::spire::Spire;
use it::world::World;
use tempfile::TempDir;

const SOON: Duration = Duration::from_mins(1);

/// Users that no other program here runs as.
const CART: u32 = 61_001;
const TILL: u32 = 61_002;
const PLANE: u32 = 61_003;

/// A folder with the SVID of a user as files, which Envoy's user may read.
async fn files(spire: &Spire, user: u32) -> TempDir {
    let folder = it::places::folder().unwrap();
    chown(folder.path(), Some(user), Some(user)).unwrap();
    spire.write(user, folder.path()).await.unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (from, to) in
        [("svid.0.pem", "tls.crt"), ("svid.0.key", "tls.key"), ("bundle.0.pem", "ca.crt")]
    {
        let to = folder.path().join(to);
        std::fs::rename(folder.path().join(from), &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    folder
}

/// Options, each of which is given the file of that name.
fn options(folder: &Path, given: [(&str, &str); 3]) -> Vec<String> {
    let of =
        |(option, name): (&str, &str)| [option.to_owned(), folder.join(name).display().to_string()];
    given.into_iter().flat_map(of).collect()
}

/// An Envoy of shop/frontend with these files, which asks for a server of this SPIFFE ID.
fn envoy(aether: &Aether, pod: &Pod, folder: &Path, server: &str) -> Envoy {
    let given = [
        ("--xds-client-cert", "tls.crt"),
        ("--xds-client-key", "tls.key"),
        ("--xds-server-ca", "ca.crt"),
    ];
    let mut all = options(folder, given);
    let secrets = folder.join("secrets").display().to_string();
    all.extend(["--xds-secrets-folder", &secrets, "--xds-server-id", server].map(str::to_owned));
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let bootstrap = aether.bootstrap("pod/shop/frontend", Over::Tcp, &all).unwrap();
    Envoy::start(pod, &bootstrap).unwrap()
}

#[tokio::test]
async fn svids_of_spire_carry_the_stream_of_xds() {
    const SERVER: &str = "spiffe://it.example/ns/aether-system/sa/aether";
    let mut spire = Spire::start_server().await.unwrap();
    spire.start_agent().await.unwrap();
    for (path, user) in [
        ("ns/shop/sa/default", CART),
        ("ns/pay/sa/till", TILL),
        ("ns/aether-system/sa/aether", PLANE),
    ] {
        spire.entry(path, user).await.unwrap();
        let id = format!("spiffe://it.example/{path}");
        spire.wait_for(user, &[&id], SOON).await.unwrap();
    }
    let plane = files(&spire, PLANE).await;
    let given = [
        ("--xds-tls-cert", "tls.crt"),
        ("--xds-tls-key", "tls.key"),
        ("--xds-client-ca", "ca.crt"),
    ];
    let all = options(plane.path(), given);
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-manifests");
    let (net, world) = (Net::new().unwrap(), World::copy_of(&manifests).unwrap());
    let mut aether = Aether::start(&net, world.path(), &all).unwrap();
    aether.serving(SOON).await.unwrap();

    // The pod whose ServiceAccount SPIRE has vouched for is served.
    let cart = files(&spire, CART).await;
    let [of_right, of_wrong, of_wary] = [(); 3].map(|()| net.pod().unwrap());
    let mut right = envoy(&aether, &of_right, cart.path(), SERVER);
    right.ready(SOON).await.unwrap();
    assert_eq!(right.listeners().await.unwrap(), ["capture_shop_frontend"]);

    // Another workload of the same trust domain is not, and a server that is another one is not believed.
    let till = files(&spire, TILL).await;
    let wrong = envoy(&aether, &of_wrong, till.path(), SERVER);
    let wary = envoy(&aether, &of_wary, cart.path(), "spiffe://it.example/ns/pay/sa/till");
    for words in [
        ["stream refused", "spiffe://it.example/ns/pay/sa/till"],
        ["tls_handshake", "does not believe our certificate"],
    ] {
        let told = eventually("a refusal in the log", SOON, || async {
            let log = aether.log();
            let found = log.lines().any(|line| words.iter().all(|word| line.contains(word)));
            anyhow::ensure!(found, "{words:?}: {}", it::process::tail(&log, 20));
            Ok(())
        });
        told.await.unwrap();
    }
    assert!(wrong.listeners().await.unwrap().is_empty());
    assert!(wary.listeners().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_entry_gives_its_user_an_svid_and_nobody_else() {
    let start = Instant::now();
    let mut spire = Spire::start_server().await.unwrap();
    println!("a SPIRE server is up after {:?}", start.elapsed());
    assert!(spire.fetch(CART).await.is_err() && !spire.socket().exists(), "there is no agent yet");
    let start = Instant::now();
    spire.start_agent().await.unwrap();
    println!("an agent is up after {:?}", start.elapsed());
    assert!(spire.start_agent().await.is_err(), "there is one");
    let refused = spire.fetch(CART).await.unwrap_err().to_string();
    assert!(refused.contains("PermissionDenied"), "{refused}");

    let start = Instant::now();
    let entry = spire.entry("ns/shop/sa/cart", CART).await.unwrap();
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    println!("an SVID is given {:?} after its entry", start.elapsed());
    assert!(spire.fetch(TILL).await.unwrap_err().to_string().contains("PermissionDenied"));

    // An agent that comes back knows the entries; one that was killed leaves a socket on which nobody answers.
    spire.stop_agent().unwrap();
    assert!(!spire.socket().exists());
    spire.start_agent().await.unwrap();
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    spire.kill_agent().unwrap();
    assert!(spire.socket().exists() && spire.fetch(CART).await.is_err());
    let start = Instant::now();
    spire.start_agent().await.unwrap();
    println!("an agent is up again after {:?}", start.elapsed());
    spire.wait_for(CART, &["spiffe://it.example/ns/shop/sa/cart"], SOON).await.unwrap();
    spire.pause_agent().unwrap();
    assert!(spire.fetch(CART).await.is_err());
    spire.resume_agent().unwrap();

    // Two selectors: both must hold.
    let both = [format!("unix:uid:{TILL}"), format!("unix:gid:{TILL}")];
    let both = both.each_ref().map(String::as_str);
    spire.entry_for("ns/pay/sa/till", &both, Some(30)).await.unwrap();
    spire.wait_for(TILL, &["spiffe://it.example/ns/pay/sa/till"], SOON).await.unwrap();
    spire.delete_entry(&entry).await.unwrap();
    let gone = async { while spire.fetch(CART).await.is_ok() {} };
    tokio::time::timeout(SOON, gone).await.expect("an SVID is given without its entry");
}
