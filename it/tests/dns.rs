//! The DNS listener: what a pod's queries are answered, by a real Envoy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use it::backend::{DnsBackend, Zone};
use it::client::{self, Records};
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::world::{Object, served};

const SOON: Duration = Duration::from_secs(20);
/// What the pod's resolv.conf would have; nobody listens there.
const NAMESERVERS: [&str; 2] = ["10.96.0.10", "fd00:10:96::a"];
const UPSTREAM: &str = "10.244.0.53";

struct Stage {
    mesh: Mesh,
    upstream: DnsBackend,
    _pod: Pod,
}

impl Stage {
    async fn set(mode: Mode, serve: &[&str]) -> Result<Self> {
        let net = Net::new()?;
        let pod = net.pod_at(&[UPSTREAM.parse()?])?;
        let zone: Zone = [
            ("stranger.example".to_owned(), vec!["198.51.100.7".parse()?, "2001:db8::7".parse()?]),
            ("web.shop.svc.cluster.local".to_owned(), vec!["10.96.1.10".parse()?]),
        ]
        .into();
        let upstream = DnsBackend::start(pod.netns(), pod.at(53)?, zone).await?;
        let server: IpAddr = "10.244.9.9".parse()?;
        let http = [(80, "http", 8080)];
        let mut objects: Vec<Object> = Vec::new();
        objects.extend(served("shop/web", &["10.96.1.10", "fd00:10:96::1:10"], &http, server)?);
        objects.extend(served("shop/four", &["10.96.1.11"], &http, server)?);
        objects.extend(served("shop/six", &["fd00:10:96::1:12"], &http, "fd00::9".parse()?)?);
        objects.extend(served("shop/ledger", &["10.96.1.13"], &[(3306, "mysql", 3306)], server)?);
        objects.extend(served("shop/peers", &["None"], &http, server)?);
        let [old, slice] = served("shop/old", &["10.96.1.14"], &http, server)?;
        objects.extend([old.annotation("aether.io/service", "fresh"), slice]);
        // Younger, so that the short name is shop's.
        let [web, slice] = served("pay/web", &["10.96.2.10"], &http, server)?;
        let younger = "2026-02-01T00:00:00Z";
        objects.extend([web.with(&["metadata", "creationTimestamp"], younger), slice]);
        let mut redirect = Redirect::new(mode);
        for server in NAMESERVERS {
            redirect = redirect.nameserver(server.parse()?);
        }
        let mut plan = Plan::new(&["shop", "pay"], objects, redirect);
        plan.serve = serve;
        Ok(Self { mesh: Mesh::start(net, plan).await?, upstream, _pod: pod })
    }

    /// Asks the pod's nameserver, as its applications do.
    async fn ask(&self, server: &str, name: &str, v6: bool) -> Result<Records> {
        let (to, name) = (SocketAddr::new(server.parse()?, 53), name.to_owned());
        let ask = async move { client::ask(to, &name, v6, SOON).await };
        self.mesh.caller()?.pod.run(ask).await
    }
}

#[tokio::test]
async fn the_names_of_the_mesh_have_their_addresses() -> Result<()> {
    for (mode, word) in [(Mode::All, "redirect-all"), (Mode::Scoped, "scoped")] {
        // The port of an upstream is 53 where none is given.
        let serve = ["--dns-filter", "--dns-upstream", UPSTREAM, "--capture-mode", word];
        let stage = Stage::set(mode, &serve).await?;
        for (name, v4, v6) in [
            ("web.shop.aether.internal", Some("10.96.1.10"), Some("fd00:10:96::1:10")),
            ("web.aether.internal", Some("10.96.1.10"), Some("fd00:10:96::1:10")),
            ("web.pay.aether.internal", Some("10.96.2.10"), None),
            ("four.shop.aether.internal", Some("10.96.1.11"), None),
            ("six.aether.internal", None, Some("fd00:10:96::1:12")),
            ("ledger.shop.aether.internal", Some("10.96.1.13"), None),
            ("fresh.shop.aether.internal", Some("10.96.1.14"), None),
            ("fresh.aether.internal", Some("10.96.1.14"), None),
        ] {
            for (is_v6, wanted) in [(false, v4), (true, v6)] {
                let Some(wanted) = wanted else { continue };
                for server in NAMESERVERS {
                    let got = stage.ask(server, name, is_v6).await?;
                    let wanted: IpAddr = wanted.parse()?;
                    ensure!(got.addresses == [wanted] && got.ttls == [30], "{name}: {got:?}");
                }
            }
        }
        ensure!(stage.upstream.queries() == 0, "a name of the mesh was asked upstream");
    }
    Ok(())
}

#[tokio::test]
async fn what_the_mesh_does_not_know_is_asked_upstream() -> Result<()> {
    let stage = Stage::set(Mode::All, &["--dns-filter", "--dns-upstream", UPSTREAM]).await?;
    for (name, v6, wanted) in [
        ("stranger.example", false, "198.51.100.7"),
        ("stranger.example", true, "2001:db8::7"),
        ("web.shop.svc.cluster.local", false, "10.96.1.10"),
    ] {
        let before = stage.upstream.queries();
        let got = stage.ask(NAMESERVERS[0], name, v6).await?;
        ensure!(got.addresses == [wanted.parse::<IpAddr>()?], "{name}: {got:?}");
        ensure!(stage.upstream.queries() > before, "{name} was not asked upstream");
    }
    // Headless, renamed away, in no namespace, of nobody.
    for name in [
        "peers.shop.aether.internal",
        "old.shop.aether.internal",
        "web.none.aether.internal",
        "nobody.example",
    ] {
        let got = stage.ask(NAMESERVERS[0], name, false).await?;
        ensure!(got.code == "Non-Existent Domain" && got.addresses.is_empty(), "{name}: {got:?}");
    }
    Ok(())
}

#[tokio::test]
async fn without_an_upstream_the_table_is_all_there_is() -> Result<()> {
    let stage = Stage::set(Mode::All, &["--dns-filter"]).await?;
    let got = stage.ask(NAMESERVERS[0], "web.shop.aether.internal", false).await?;
    ensure!(got.addresses == ["10.96.1.10".parse::<IpAddr>()?], "{got:?}");
    for name in ["nobody.aether.internal", "stranger.example"] {
        let got = stage.ask(NAMESERVERS[0], name, false).await?;
        ensure!(got.code == "Non-Existent Domain" && got.addresses.is_empty(), "{name}: {got:?}");
    }
    ensure!(stage.upstream.queries() == 0);
    Ok(())
}

#[tokio::test]
async fn without_the_option_there_is_no_dns_listener() -> Result<()> {
    let stage = Stage::set(Mode::All, &[]).await?;
    let listeners = stage.mesh.caller()?.envoy.listeners().await?;
    ensure!(listeners == ["capture_shop_caller"], "{listeners:?}");
    Ok(())
}

/// What came of the queries for one name.
#[derive(Debug, Default)]
struct Asked {
    right: u64,
    /// Answered that there is no such name.
    denied: u64,
}

/// Asks for a name again and again, one datagram each and never a second, so that a lost one shows.
async fn ask_on(name: &'static str, wanted: IpAddr, ends: Arc<AtomicBool>) -> Result<Asked> {
    let to = SocketAddr::new(NAMESERVERS[0].parse()?, 53);
    let mut asked = Asked::default();
    while !ends.load(Ordering::Relaxed) {
        let got = client::ask(to, name, false, Duration::from_secs(5)).await;
        let got = got.with_context(|| format!("{name} after {asked:?}"))?;
        match got.addresses.as_slice() {
            [one] if *one == wanted => asked.right += 1,
            [] if got.code == "Non-Existent Domain" => asked.denied += 1,
            _ => bail!("{name} after {asked:?}: {got:?}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(asked)
}

#[tokio::test]
async fn no_query_is_lost_while_the_table_changes() -> Result<()> {
    const CHANGES: u64 = 50;
    let serve = ["--dns-filter", "--dns-upstream", UPSTREAM];
    let stage = Stage::set(Mode::All, &serve).await?;
    let caller = stage.mesh.caller()?;
    let ends = Arc::new(AtomicBool::new(false));
    let start = |name, wanted: &str| {
        let wanted = wanted.parse()?;
        caller.pod.netns().spawn(ask_on(name, wanted, ends.clone()))
    };
    let mesh = [
        start("web.shop.aether.internal", "10.96.1.10")?,
        start("web.aether.internal", "10.96.1.10")?,
        start("web.pay.aether.internal", "10.96.2.10")?,
    ];
    let forwarded = start("stranger.example", "198.51.100.7")?;
    let server: IpAddr = "10.244.9.9".parse()?;
    for n in 1..=CHANGES {
        let (key, ip) = (format!("shop/new{n}"), format!("10.96.8.{n}"));
        // Each takes the place of the one before, so names come and go.
        stage.mesh.world.put("new", &served(&key, &[&ip], &[(80, "http", 8080)], server)?)?;
        let there = || async {
            let name = format!("new{n}.shop.aether.internal");
            let got = stage.ask(NAMESERVERS[0], &name, false).await?;
            ensure!(got.addresses == [ip.parse::<IpAddr>()?], "{got:?}");
            Ok(())
        };
        it::eventually(&format!("the name of {key}"), SOON, there).await?;
    }
    ends.store(true, Ordering::Relaxed);
    let mut queries = 0;
    for worker in mesh {
        let asked = worker.await??;
        ensure!(asked.denied == 0, "a name of the mesh was denied: {asked:?}");
        queries += asked.right;
    }
    let forwarded = forwarded.await??;
    let changed = caller.envoy.stat("listener_manager.listener_modified").await?;
    eprintln!("{queries} queries and {forwarded:?} forwarded ones, {changed} changes");
    ensure!(changed >= CHANGES && queries > 10 * CHANGES && forwarded.right > CHANGES);
    // Envoy denies the forwarded query that is under way at the moment of a change; it has no option for it. That is
    // at most one a change here, where one is under way at a time.
    ensure!(forwarded.denied <= changed, "{forwarded:?} in {changed} changes");
    Ok(())
}
