//! The first pass over many accounts, with the API server out of reach in the midst of it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use it::cluster::{Cluster, Options, Proxy};
use it::objects::Objects;
use it::plane::Plane;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::stage::{SOON, runs};

const ACCOUNTS: usize = 5_000;
/// How long the API server is out of reach: longer than the lease lasts.
const AWAY: Duration = Duration::from_secs(20);

/// How many Services were made.
async fn made(services: &Api<Service>) -> Result<usize> {
    let labelled = ListParams::default().labels("aether.io/mesh-service=true");
    Ok(services.list_metadata(&labelled).await?.items.len())
}

/// Waits until so many were made.
async fn until(services: &Api<Service>, count: usize) -> Result<()> {
    let limit = tokio::time::Instant::now() + Duration::from_mins(4);
    loop {
        let now = made(services).await?;
        if now >= count {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < limit, "{now} of {count} Services were made");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes minutes, and is a measurement"]
async fn first_pass_over_many_accounts_with_a_partition() -> Result<()> {
    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    for namespace in ["aether-system", "spire-system", "shop"] {
        objects.put(&json!({ "kind": "Namespace", "metadata": { "name": namespace } })).await?;
    }
    let begun = Instant::now();
    let all = stream::iter(0..ACCOUNTS).map(|n| {
        let objects = &objects;
        async move {
            let (pod, account) = (format!("p-{n}"), format!("a-{n}"));
            runs(objects, "shop", &pod, &account, &json!({})).await
        }
    });
    all.buffer_unordered(32).try_collect::<Vec<()>>().await?;
    println!("{ACCOUNTS} accounts and pods were made in {:?}", begun.elapsed());

    let proxy = Proxy::to(cluster.address()).await?;
    let kubeconfig = cluster.kubeconfig_at(&cluster.admin(), proxy.address())?;
    let services: Api<Service> = Api::namespaced(cluster.client().await?, "shop");
    let plane = Plane::start(&kubeconfig, &["--own-namespace", "aether-system"])?;
    plane.says(&["this process leads"], SOON).await?;
    let begun = Instant::now();
    until(&services, ACCOUNTS / 4).await?;
    proxy.refuse().await;
    proxy.cut();
    let before = begun.elapsed();
    // What was under way may have arrived.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let then = made(&services).await?;
    tokio::time::sleep(AWAY).await;
    ensure!(made(&services).await? == then, "Services were made from behind a partition");
    proxy.accept().await?;
    let again = Instant::now();
    until(&services, ACCOUNTS).await?;
    println!(
        "{then} Services before the partition in {before:?}, the others in {:?} from its end",
        again.elapsed()
    );
    ensure!(made(&services).await? == ACCOUNTS);
    Ok(())
}
