//! xDS by TCP with TLS: Envoys prove that they are their pods, and files are replaced under them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::eventually;
use it::net::{NODE_V4, Net, Pod};
use it::world::World;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType,
};

const SOON: Duration = Duration::from_secs(30);
/// Whether the stream is up, and how many connections there were.
const CONNECTED: &str = "control_plane.connected_state";
const CONNECTIONS: &str = "cluster.aether_xds.upstream_cx_total";

const FRONTEND: &str = "spiffe://td/ns/shop/sa/default";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    // A name that is the subject's too would make each certificate one that signed itself.
    params.distinguished_name.push(DnType::CommonName, format!("mesh {}", fastrand::u64(..)));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A folder with an identity: `tls.crt`, `tls.key` and the authorities that it trusts, `ca.crt`.
struct Identity {
    folder: tempfile::TempDir,
}

impl Identity {
    fn new() -> Self {
        let folder = it::places::folder().unwrap();
        // Envoy runs as another user.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Signed for this SPIFFE ID, valid for so many seconds.
    fn of(by: &Authority, id: &str, seconds: u64) -> Self {
        let identity = Self::new();
        identity.sign(by, id, seconds);
        identity.put("ca.crt", &by.pem());
        identity
    }

    /// Signs the pair anew.
    fn sign(&self, by: &Authority, id: &str, seconds: u64) {
        let mut params = CertificateParams::default();
        params.subject_alt_names =
            vec![SanType::URI(id.try_into().unwrap()), SanType::IpAddress(NODE_V4.into())];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let now = SystemTime::now();
        params.not_before = (now - Duration::from_hours(1)).into();
        params.not_after = (now + Duration::from_secs(seconds)).into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, by).unwrap();
        self.put("tls.key", &key.serialize_pem());
        self.put("tls.crt", &certificate.pem());
    }

    /// Replaces a file by renaming another one over it.
    fn put(&self, name: &str, text: &str) {
        let fresh = self.path("fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::rename(fresh, self.path(name)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// An Envoy with this identity, for this node.
fn envoy(aether: &Aether, pod: &Pod, node: &str, identity: &Identity, more: &[&str]) -> Envoy {
    let [certificate, key, authorities] =
        ["tls.crt", "tls.key", "ca.crt"].map(|name| identity.text(name));
    let secrets = identity.text("secrets");
    let mut options = vec!["--xds-client-cert", &certificate, "--xds-client-key", &key];
    options.extend(["--xds-server-ca", &authorities, "--xds-secrets-folder", &secrets]);
    options.extend(more);
    let bootstrap = aether.bootstrap(node, Over::Tcp, &options).unwrap();
    it::envoy::validate(&bootstrap).unwrap();
    Envoy::start(pod, &bootstrap).unwrap()
}

async fn says(what: &str, log: impl Fn() -> String, words: &[&str]) {
    let what = format!("{words:?} in the log of {what}");
    let asked = eventually(&what, SOON, || async {
        let log = log();
        let found = log.lines().any(|line| words.iter().all(|word| line.contains(word)));
        anyhow::ensure!(found, "{}", it::process::tail(&log, 20));
        Ok(())
    });
    asked.await.unwrap();
}

async fn serve(net: &Net, world: &World, plane: &Identity, more: &[&str]) -> Aether {
    let [certificate, key, authorities] =
        ["tls.crt", "tls.key", "ca.crt"].map(|name| plane.text(name));
    let mut options = vec!["--xds-tls-cert", &certificate, "--xds-tls-key", &key];
    options.extend(["--xds-client-ca", &authorities]);
    options.extend(more);
    let mut aether = Aether::start(net, world.path(), &options).unwrap();
    aether.serving(SOON).await.unwrap();
    aether
}

#[tokio::test]
async fn envoys_prove_that_they_are_their_pods_and_files_are_replaced_under_them() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-manifests");
    let (net, world) = (Net::new().unwrap(), World::copy_of(&manifests).unwrap());
    let (first, second) = (authority(), authority());
    let plane = Identity::of(&first, "spiffe://td/ns/aether-system/sa/aether", 3600);
    let mut aether = serve(&net, &world, &plane, &[]).await;
    says("aether", || aether.log(), &["xDS on TCP", "tls=true"]).await;
    let expects = ["--xds-server-id", "spiffe://td/ns/aether-system/sa/aether"];

    // The one that is who it says is served; by the server's address and by its SPIFFE ID.
    let pod = net.pod().unwrap();
    let cart = Identity::of(&first, FRONTEND, 3600);
    let mut right = envoy(&aether, &pod, "pod/shop/frontend", &cart, &[]);
    let other_pod = net.pod().unwrap();
    let mut too = envoy(&aether, &other_pod, "pod/shop/frontend", &cart, &expects);
    for envoy in [&mut right, &mut too] {
        envoy.ready(SOON).await.unwrap();
        assert_eq!(envoy.listeners().await.unwrap(), ["capture_shop_frontend"]);
    }
    drop(too);

    // The others are not, and both sides say what differs.
    for (id, node, words) in [
        ("spiffe://td/ns/shop/sa/till", "pod/shop/frontend", "the ServiceAccount differs"),
        ("spiffe://elsewhere/ns/shop/sa/default", "pod/shop/frontend", "the trust domain differs"),
        (FRONTEND, "pod/pay/till", "the namespace differs"),
    ] {
        let identity = Identity::of(&first, id, 3600);
        let wrong = envoy(&aether, &other_pod, node, &identity, &[]);
        says("aether", || aether.log(), &["stream refused", words, id]).await;
        says("Envoy", || wrong.log(), &[words]).await;
        assert!(wrong.listeners().await.unwrap().is_empty());
    }
    for (identity, words) in [
        (Identity::of(&second, FRONTEND, 3600), "none of the authorities of --xds-client-ca"),
        (Identity::of(&first, FRONTEND, 0), "its certificate has expired"),
    ] {
        // Envoy believes the server, whatever the server thinks of it.
        identity.put("ca.crt", &first.pem());
        let _wrong = envoy(&aether, &other_pod, "pod/shop/frontend", &identity, &[]);
        says("aether", || aether.log(), &["tls_handshake", words]).await;
    }
    let plain = aether.bootstrap("pod/shop/frontend", Over::Tcp, &[]).unwrap();
    let plain = Envoy::start(&other_pod, &plain).unwrap();
    says("aether", || aether.log(), &["plain_text", "this address speaks TLS"]).await;
    assert!(plain.listeners().await.unwrap().is_empty());
    drop(plain);
    // Envoy does not take another server for ours.
    let strange = ["--xds-server-id", "spiffe://td/ns/aether-system/sa/other"];
    let _wary = envoy(&aether, &other_pod, "pod/shop/frontend", &cart, &strange);
    says("aether", || aether.log(), &["tls_handshake", "does not believe our certificate"]).await;

    // Files that are broken cost nothing.
    plane.put("tls.crt", "garbage");
    says("aether", || aether.log(), &["--xds-tls-cert", "the last good files are used"]).await;
    // A new authority: both are trusted, then our pair is signed by the new one.
    plane.put("ca.crt", &format!("{}{}", first.pem(), second.pem()));
    plane.sign(&second, "spiffe://td/ns/aether-system/sa/aether", 3600);
    says("aether", || aether.log(), &["new files of TLS are used"]).await;
    let newcomer = Identity::of(&second, FRONTEND, 3600);
    let mut newcomer = envoy(&aether, &other_pod, "pod/shop/frontend", &newcomer, &expects);
    newcomer.ready(SOON).await.unwrap();
    drop(newcomer);
    // A pair of another trust domain is presented, and makes nobody of that one welcome.
    plane.sign(&second, "spiffe://elsewhere/aether", 3600);
    let taken = eventually("the files to be read again", SOON, || async {
        let times = aether.log().matches("new files of TLS are used").count();
        anyhow::ensure!(times == 2, "{times}");
        Ok(())
    });
    taken.await.unwrap();
    let stranger = "spiffe://elsewhere/ns/shop/sa/late";
    let identity = Identity::of(&second, stranger, 3600);
    let wrong = envoy(&aether, &other_pod, "pod/shop/frontend", &identity, &[]);
    let words = ["stream refused", "the trust domain differs", stranger];
    says("aether", || aether.log(), &words).await;
    drop(wrong);
    // The stream that was there is the one that is there.
    assert_eq!(right.stat(CONNECTED).await.unwrap(), 1);
    assert_eq!(right.stat(CONNECTIONS).await.unwrap(), 1, "{}", right.log());
    assert!(aether.stop(SOON).unwrap().success());
}

#[tokio::test]
async fn a_stream_ends_with_its_certificate_and_envoy_comes_back_with_the_next() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-manifests");
    let (net, world) = (Net::new().unwrap(), World::copy_of(&manifests).unwrap());
    let authority = authority();
    let plane = Identity::of(&authority, "spiffe://td/aether", 3600);
    let aether = serve(&net, &world, &plane, &[]).await;
    let pod = net.pod().unwrap();
    let frontend = Identity::of(&authority, FRONTEND, 6);
    let mut envoy = envoy(&aether, &pod, "pod/shop/frontend", &frontend, &[]);
    envoy.ready(SOON).await.unwrap();
    assert_eq!(envoy.stat(CONNECTIONS).await.unwrap(), 1);
    // Renewed in time, as whoever keeps it does.
    frontend.sign(&authority, FRONTEND, 3600);
    envoy.stat_is(CONNECTIONS, SOON, |connections| connections == 2).await.unwrap();
    envoy.stat_is(CONNECTED, SOON, |connected| connected == 1).await.unwrap();
    assert!(!aether.log().contains("refused"), "{}", aether.log());
}
