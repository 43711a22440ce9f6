//! A new snapshot is tried on one proxy first: what it refuses goes no further, and everything else does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::eventually;
use it::net::{Net, Pod};
use it::world::{Object, World, served};

const SOON: Duration = Duration::from_secs(20);
/// A filter that every TCP chain needs. An Envoy without it refuses the listener that has such a chain.
const WITHOUT: [&str; 2] =
    ["--disable-extensions", "envoy.filters.network/envoy.filters.network.set_filter_state"];
const HTTP: &[(u16, &str, u16)] = &[(80, "http", 8080)];
const TCP: &[(u16, &str, u16)] = &[(5432, "postgres", 5432)];

/// The proxies: the first to connect is the one that refuses.
struct Stage {
    aether: Aether,
    world: World,
    proxies: Vec<(Envoy, Pod)>,
    net: Net,
}

impl Stage {
    async fn set() -> Result<Self> {
        let (net, world) = (Net::new()?, World::new()?);
        let mut objects = vec![Object::namespace("shop"), Object::node("n", "r", "z")];
        let address = |n: u8| IpAddr::from([10, 244, 9, n]);
        objects
            .extend((0..3).map(|n| Object::pod("shop", &format!("web-{n}"), "n", &[address(n)])));
        world.put("base", &objects)?;
        let options = ["--canary", "1", "--canary-wait", "60s", "--admin-address", "none"];
        let mut aether = Aether::start(&net, world.path(), &options)?;
        aether.serving(SOON).await?;
        let mut stage = Self { aether, world, proxies: Vec::new(), net };
        for n in 0..3 {
            stage.connect(n, if n == 0 { &WITHOUT } else { &[] }).await?;
        }
        Ok(stage)
    }

    async fn connect(&mut self, n: usize, options: &[&str]) -> Result<()> {
        let pod = self.net.pod()?;
        // Both protocols.
        let protocol: &[&str] = if n == 2 { &["--protocol", "sotw"] } else { &[] };
        let bootstrap =
            self.aether.bootstrap(&format!("pod/shop/web-{n}"), Over::Socket, protocol)?;
        let mut envoy = Envoy::start_with(&pod, &bootstrap, options)?;
        envoy.ready(SOON).await?;
        self.proxies.push((envoy, pod));
        Ok(())
    }

    fn put(&self, name: &str, ip: &str, ports: &[(u16, &str, u16)]) -> Result<()> {
        let endpoint = [10, 244, 200, 1].into();
        self.world.put(name, &served(&format!("shop/{name}"), &[ip], ports, endpoint)?)
    }

    async fn has(&self, n: usize, words: &str) -> Result<bool> {
        Ok(self.proxies[n].0.admin("/config_dump?include_eds").await?.contains(words))
    }

    /// Waits until the others have it.
    async fn served_to_all(&self, words: &str) -> Result<()> {
        let asked = eventually(words, SOON, || async {
            for n in 1..self.proxies.len() {
                ensure!(self.has(n, words).await?, "proxy {n} does not have it");
            }
            Ok(())
        });
        asked.await.with_context(|| it::process::tail(&self.aether.log(), 30))
    }

    async fn says(&self, words: &[&str]) -> Result<()> {
        let what = format!("{words:?}");
        let asked = eventually(&what, SOON, || async {
            let log = self.aether.log();
            ensure!(log.lines().any(|line| words.iter().all(|word| line.contains(word))));
            Ok(())
        });
        asked.await.with_context(|| it::process::tail(&self.aether.log(), 30))
    }
}

#[tokio::test]
async fn what_the_first_proxy_refuses_goes_no_further() -> Result<()> {
    let mut stage = Stage::set().await?;
    stage.put("cart", "10.96.0.1", HTTP)?;
    stage.served_to_all("cart.shop.svc.cluster.local").await?;

    stage.put("db", "10.96.0.2", TCP)?;
    stage.says(&["refused the snapshot", "pod/shop/web-0", "shop/db", "set_filter_state"]).await?;
    stage.says(&["HeldBack", "Service shop/db", "nothing of it is served"]).await?;
    // Everything else goes on, and it is the same proxy that is asked.
    stage.put("news", "10.96.0.3", HTTP)?;
    stage.served_to_all("news.shop.svc.cluster.local").await?;
    for n in 0..3 {
        ensure!(!stage.has(n, "cap_tcp_shop/db_10.96.0.2").await?, "proxy {n} was told of it");
        ensure!(
            n == 0 || stage.proxies[n].0.stat("listener_manager.lds.update_rejected").await? == 0
        );
    }
    ensure!(stage.proxies[0].0.stat("listener_manager.lds.update_rejected").await? == 1);

    // A Service that is served already keeps its last accepted form.
    stage.put("cart", "10.96.0.1", &[(80, "http", 8080), (9000, "echo", 9000)])?;
    stage.says(&["HeldBack", "Service shop/cart", "its last accepted form stays served"]).await?;
    ensure!(stage.has(1, "cart.shop.svc.cluster.local").await?);
    ensure!(!stage.has(1, "cap_tcp_shop/cart_10.96.0.1").await?);

    // Changed into something that the proxy takes, it is served, and all is well.
    stage.put("db", "10.96.0.2", HTTP)?;
    stage.served_to_all("db.shop.svc.cluster.local").await?;
    stage.says(&["resolved: HeldBack of Service shop/db"]).await?;

    // Another proxy is asked when that one is gone, and takes it.
    drop(stage.proxies.remove(0));
    stage.put("queue", "10.96.0.4", TCP)?;
    let chain = "cap_tcp_shop/queue_10.96.0.4";
    eventually(chain, SOON, || async {
        ensure!(stage.has(0, chain).await? && stage.has(1, chain).await?);
        Ok(())
    })
    .await
}
