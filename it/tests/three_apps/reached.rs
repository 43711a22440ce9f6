//! Real Envoys load the cluster, and a pod reaches every shape of it that is captured.

use std::time::Duration;

use it::aether::{Aether, Over};
use it::backend::{self, H2Backend, Http1Backend};
use it::client;
use it::envoy::Envoy;
use it::loaded::{Loaded, agrees};
use it::net::{Mode, Net, Redirect};

use super::{CALLER, manifests};

const SOON: Duration = Duration::from_secs(20);

/// Both of the caller's zone, which it prefers; a pod with both addresses stands for both.
const MIXED: [&str; 2] = ["10.244.0.7", "10.244.3.4"];

#[tokio::test]
async fn every_shape_is_loaded_over_both_protocols_in_both_modes() {
    for options in [&["--dns-filter"][..], &["--capture-mode", "scoped", "--dns-filter"]] {
        let net = Net::new().unwrap();
        let mut aether = Aether::start(&net, &manifests(), options).unwrap();
        aether.serving(SOON).await.unwrap();
        let rendered = Loaded::rendered(&manifests(), CALLER, options).unwrap();
        for (protocol, over) in [("delta", Over::Tcp), ("sotw", Over::Socket)] {
            let pod = net.pod().unwrap();
            let bootstrap = aether.bootstrap(CALLER, over, &["--protocol", protocol]).unwrap();
            let mut envoy = Envoy::start(&pod, &bootstrap).unwrap();
            envoy.ready(SOON).await.unwrap();
            agrees(&envoy, &rendered, SOON).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_pod_reaches_every_shape_that_is_captured() {
    let net = Net::new().unwrap();
    let mixed = net.pod_at(&MIXED.map(|ip| ip.parse().unwrap())).unwrap();
    let manual = net.pod_at(&["203.0.113.7".parse().unwrap()]).unwrap();
    let generated = net.pod_at(&["10.244.0.8".parse().unwrap()]).unwrap();
    let any = |port: u16| (std::net::Ipv4Addr::UNSPECIFIED, port).into();
    let web = Http1Backend::named(mixed.netns(), any(8080), "web").await.unwrap();
    let api = H2Backend::named(mixed.netns(), any(9090), "api").await.unwrap();
    let bus = backend::echo(mixed.netns(), any(5222)).await.unwrap();
    let dns = backend::echo(mixed.netns(), any(53)).await.unwrap();
    let db = backend::echo(manual.netns(), any(5432)).await.unwrap();
    let own = H2Backend::named(generated.netns(), any(9443), "generated").await.unwrap();

    let mut aether = Aether::start(&net, &manifests(), &[]).unwrap();
    aether.serving(SOON).await.unwrap();
    let pod = net.pod().unwrap();
    pod.redirect(&Redirect::new(Mode::All)).unwrap();
    let bootstrap = aether.bootstrap(CALLER, Over::Socket, &[]).unwrap();
    let mut envoy = Envoy::start(&pod, &bootstrap).unwrap();
    envoy.ready(SOON).await.unwrap();

    for (to, host, answer) in [
        ("10.96.21.206:80", "mixed", "web"),
        ("10.96.21.206:9090", "mixed.aether.internal:9090", "api"),
        // A headless Service's name leads to the address of a pod, and the host decides.
        ("10.244.5.1:8080", "headless.edge.svc.cluster.local:8080", "web"),
        ("10.96.200.91:80", "reviews.edge.aether.internal", "web"),
        ("10.96.200.91:80", "renamed", "web"),
        ("10.96.160.158:18081", "generated", "generated"),
    ] {
        let address = to.parse().unwrap();
        let got = pod.run(async move { client::get(address, host, "/").await }).await.unwrap();
        assert_eq!((got.status().unwrap(), got.text().as_str()), (200, answer), "{host} at {to}");
    }
    for (to, backend) in [
        ("10.96.21.206:5222", &bus),
        ("10.96.22.5:5432", &db),
        ("10.96.22.5:18081", &db),
        ("10.96.110.102:53", &dns),
    ] {
        let (address, before) = (to.parse().unwrap(), backend.counts().connections());
        let said =
            pod.run(async move { client::say(address, b"\0word\n", 6).await }).await.unwrap();
        assert_eq!(said.0, b"\0word\n", "{to}");
        assert_eq!(backend.counts().connections(), before + 1, "{to}");
    }
    // The loser of a name is not reached by it: it goes where it was going, which leads nowhere here.
    let requests = web.counts().requests();
    let twin = "10.96.185.204:80".parse().unwrap();
    let got = pod.run(async move { client::get(twin, "twin", "/").await }).await.unwrap();
    assert_eq!(got.status().unwrap(), 503, "{}", got.text());
    assert_eq!(
        (web.counts().requests(), api.counts().requests(), own.counts().requests()),
        (requests, 1, 1)
    );
}
