//! A real Envoy through a bad day: requests go on while nobody can say anything new, and then follow what is new.

use std::time::Duration;

use anyhow::{Result, ensure};
use it::backend::Http1Backend;
use it::cluster::{Cluster, Options};
use it::envoy::Envoy;
use it::load::{Load, Pace, Work};
use it::net::{Mode, Net, Redirect};
use it::objects::Objects;
use it::plane::Plane;
use serde_json::json;

use crate::stage::{CALLER, SOON, calls, service, slice};

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_while_the_api_server_is_away() -> Result<()> {
    let net = Net::new()?;
    let (caller, servers) = (net.pod()?, [net.pod()?, net.pod()?]);
    caller.redirect(&Redirect::new(Mode::All))?;
    let mut backends = Vec::new();
    for (server, name) in servers.iter().zip(["first", "second"]) {
        backends.push(Http1Backend::named(server.netns(), server.at(8080)?, name).await?);
    }
    let at = |n: usize| servers[n].v4().map(|ip| ip.to_string());

    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    calls(&objects).await?;
    objects.put(&service("cart", json!({}), json!({ "clusterIP": "10.96.3.1" }))).await?;
    objects.put(&slice("cart-1", "cart", &[&at(0)?])).await?;

    let plane = Plane::start(&cluster.kubeconfig(&cluster.admin())?, &[])?;
    plane.says(&["xDS on a Unix socket"], SOON).await?;
    let mut envoy = Envoy::start(&caller, &plane.bootstrap(CALLER)?)?;
    envoy.ready(SOON).await?;
    let work = Work::Http {
        address: "10.96.3.1:80".parse()?,
        host: "cart".to_owned(),
        body: "first".to_owned(),
    };
    let load = Load::start(caller.netns(), &[work.clone(), work], Pace::default())?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.stop_api_server()?;
    plane.says(&["cannot be reached"], Duration::from_secs(5)).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.start_api_server().await?;
    plane.says(&["is reached again"], SOON).await?;
    load.stop().await?.flawless(2)?;

    objects.put(&slice("cart-1", "cart", &[&at(1)?])).await?;
    let moved = it::eventually("the second backend", SOON, || async {
        let get = it::client::get("10.96.3.1:80".parse()?, "cart", "/");
        let answer = caller.run(get).await?;
        ensure!(answer.text() == "second", "{answer:?}");
        Ok(())
    });
    moved.await
}
