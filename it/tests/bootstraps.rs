//! Envoy itself takes every bootstrap: those that the repository shows, and those that `aether` prints.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use it::backend::{self, Http1Backend};
use it::client;
use it::envoy::{Envoy, validate};
use it::net::{Mode, Net, Redirect};

const SOON: Duration = Duration::from_secs(20);

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What a command of `aether` prints over the demo's manifests.
fn printed(line: &str) -> String {
    let manifests = folder("demo-manifests");
    let mut args: Vec<&str> = line.split_whitespace().collect();
    if line.starts_with("render") {
        args.extend(["--manifests", manifests.to_str().unwrap()]);
    }
    let done = it::aether::run(&args).unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn envoy_takes_the_bootstraps_of_the_repository() {
    let all = std::fs::read_dir(folder("../envoy")).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect();
    assert!(all.len() >= 4, "{all:?}");
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        validate(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        // Envoy looks at it: a field that it does not know is refused.
        let wrong = validate(&text.replace("connect_timeout:", "connect_patience:")).unwrap_err();
        assert!(format!("{wrong:#}").contains("connect_patience"), "{wrong:#}");
    }
}

#[test]
fn envoy_takes_every_form_that_aether_prints() {
    for options in [
        "--xds-socket /run/aether/xds.sock",
        "--xds-address 127.0.0.1:18000 --protocol sotw",
        "--xds-address [::1]:18000",
        "--xds-address aether.aether-system.svc:18000 --admin-socket none",
    ] {
        validate(&printed(&format!("bootstrap --node pod/shop/frontend {options}"))).unwrap();
    }
    for options in ["", "--capture-mode scoped", "--dns-filter --dns-upstream 10.96.0.10,fd00::a"] {
        for node in ["pod/shop/frontend", "pod/pay/till"] {
            let bootstrap = printed(&format!("render --bootstrap --node {node} {options}"));
            validate(&bootstrap).unwrap_or_else(|error| panic!("{node} {options}: {error:#}"));
        }
    }
}

#[tokio::test]
async fn a_rendered_bootstrap_runs_as_it_is_and_captures() {
    for (mode, options, port) in
        [(Mode::All, "", 80), (Mode::Scoped, "--capture-mode scoped", 18081)]
    {
        let net = Net::new().unwrap();
        let at = |ip: &str| net.pod_at(&[ip.parse().unwrap()]).unwrap();
        let (web, more, ledger) = (at("10.244.1.21"), at("10.244.1.22"), at("10.244.2.21"));
        let named =
            |pod| Http1Backend::named(pod, (std::net::Ipv4Addr::UNSPECIFIED, 8080).into(), "web");
        let _web = (named(web.netns()).await.unwrap(), named(more.netns()).await.unwrap());
        let db =
            backend::greeter(ledger.netns(), "10.244.2.21:3306".parse().unwrap(), "ledger 1.0\n")
                .await;
        let db = db.unwrap();

        let pod = net.pod().unwrap();
        pod.redirect(&Redirect::new(mode)).unwrap();
        let bootstrap = printed(&format!("render --bootstrap --node pod/shop/frontend {options}"));
        let mut envoy = Envoy::start(&pod, &bootstrap).unwrap();
        envoy.ready(SOON).await.unwrap();
        assert_eq!(envoy.listeners().await.unwrap(), ["capture_shop_frontend"]);

        let to = ([10, 96, 1, 10], port).into();
        let answer = pod.run(async move { client::get(to, "web", "/").await }).await.unwrap();
        assert_eq!((answer.status().unwrap(), answer.text().as_str()), (200, "web"), "{options}");
        let to = ([10, 96, 2, 10], if port == 80 { 3306 } else { port }).into();
        let (greeting, _) = pod.run(async move { client::say(to, b"", 11).await }).await.unwrap();
        assert_eq!((greeting.as_slice(), db.counts().connections()), (&b"ledger 1.0\n"[..], 1));
        let answer =
            pod.run(async move { client::get(([10, 96, 1, 10], port).into(), "web:7", "/").await });
        let answer = answer.await.unwrap();
        assert_eq!(answer.status().unwrap(), 404);
        assert!(answer.text().contains("shop/web"), "{}", answer.text());
    }
}
