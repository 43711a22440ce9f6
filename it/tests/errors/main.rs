//! What goes wrong around the server costs a clear word and never the mesh: wrong options and folders at the start,
//! broken and huge files while it serves, and proxies that it does not know.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod files;
mod huge;
mod nodes;
mod start;

use std::time::Duration;

use anyhow::{Context, Result};
use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::eventually;
use it::loaded::{Loaded, agrees};
use it::net::{Net, Pod};
use it::world::{Object, World};

const SOON: Duration = Duration::from_secs(20);

/// A Service `shop/<name>` with a port and an endpoint.
fn service(name: &str, n: u8, port: u16) -> [Object; 2] {
    let service = Object::service("shop", name, &format!("10.96.7.{n}")).port("http", port, "http");
    let slice = Object::slice("shop", name, "1", false).target("http", 8080);
    [service, slice.endpoint([10, 244, 7, n].into())]
}

/// A managed pod `shop/<name>`.
fn pod(name: &str, n: u8) -> Object {
    Object::pod("shop", name, "n1", &[[10, 244, 8, n].into()])
}

/// A server over a world with a Service in `web.yaml` and a pod in `caller.yaml`, whose Envoy follows.
struct Rig {
    aether: Aether,
    envoy: Envoy,
    _pod: Pod,
    world: World,
    net: Net,
}

impl Rig {
    async fn start() -> Result<Self> {
        let (net, world) = (Net::new()?, World::new()?);
        world.put("web", &service("web", 1, 80))?;
        world.put("caller", &[pod("caller", 1)])?;
        let mut aether = Aether::start(&net, world.path(), &[])?;
        aether.serving(SOON).await?;
        let pod = net.pod()?;
        let envoy = Envoy::start(&pod, &aether.bootstrap("pod/shop/caller", Over::Socket, &[])?)?;
        let mut rig = Self { aether, envoy, _pod: pod, world, net };
        rig.envoy.ready(SOON).await?;
        rig.follows().await?;
        Ok(rig)
    }

    /// What `render` makes of the folder for the caller.
    fn rendered(&self) -> Result<Loaded> {
        Loaded::rendered(self.world.path(), "pod/shop/caller", &[])
    }

    /// Waits until the Envoy has what `render` makes of the folder, which is returned.
    async fn follows(&self) -> Result<Loaded> {
        let rendered = self.rendered()?;
        agrees(&self.envoy, &rendered, SOON).await?;
        Ok(rendered)
    }

    /// What the Envoy has at this moment.
    async fn loaded(&self) -> Result<Loaded> {
        Loaded::of_dump(&self.envoy.config_dump().await?)
    }

    /// How many updates of any kind the Envoy was sent.
    async fn updates(&self) -> Result<u64> {
        let counts = self.envoy.stats("(cds|lds|rds.*|cluster.*)\\.update_attempt").await?;
        Ok(counts.values().sum())
    }

    /// Waits until the server has said this, after so many bytes of its log; returns the line.
    async fn says(&mut self, after: usize, words: &[&str]) -> Result<String> {
        self.says_within(SOON, after, words).await
    }

    async fn says_within(
        &mut self,
        limit: Duration,
        after: usize,
        words: &[&str],
    ) -> Result<String> {
        let said = eventually("the server says so", limit, || async {
            let log = self.aether.log();
            let mut lines = log.get(after..).unwrap_or_default().lines();
            let line = lines.find(|line| words.iter().all(|word| line.contains(word)));
            line.map(str::to_owned).with_context(|| format!("{words:?} is not in the log:\n{log}"))
        });
        let said = said.await?;
        self.aether.process().must_run()?;
        Ok(said)
    }
}
