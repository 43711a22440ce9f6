//! In a cluster, where all that there is to know of the API server is mounted into the pod.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::account::{Account, NAMESPACE};
use it::cluster::Options;
use it::delta::Stream;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::json;
use tempfile::TempDir;

use crate::stage::{CALLER, SOON, service, slice, world};

/// Files of a mounted ServiceAccount are read again after a minute.
const READ_AGAIN: Duration = Duration::from_secs(75);

/// Writes what is mounted, each file at once.
fn mount(folder: &Path, name: &str, text: &str) -> Result<()> {
    let fresh = folder.join(format!("{name}.new"));
    std::fs::write(&fresh, text)?;
    Ok(std::fs::rename(fresh, folder.join(name))?)
}

/// Writes an account's token as it is now.
async fn mount_token(account: &Account, folder: &Path) -> Result<()> {
    let identity = account.cluster.service_account(NAMESPACE, "aether").await?;
    mount(folder, "token", &identity.token)
}

/// A cluster with a small world, and what is mounted into the pod.
async fn cluster() -> Result<(Account, TempDir)> {
    let account = Account::start(Options::bare()).await?;
    world(&account.objects).await?;
    let folder = it::places::folder()?;
    mount_token(&account, folder.path()).await?;
    mount(folder.path(), "ca.crt", &account.cluster.authority())?;
    mount(folder.path(), "namespace", NAMESPACE)?;
    Ok((account, folder))
}

/// Waits until a stream has this endpoint.
async fn has(stream: &Stream, address: &str, limit: Duration) -> Result<()> {
    let has = |held: &it::delta::Held| {
        let all = held.endpoints("shop/cart:80");
        all.is_some_and(|all| all.iter().any(|one| one.contains(address)))
    };
    stream.until(address, limit, has).await.map(drop)
}

#[tokio::test]
async fn a_pod_needs_nothing_but_what_is_mounted() -> Result<()> {
    let (account, folder) = cluster().await?;
    let mut own = service("own", json!({}), json!({}));
    own["metadata"]["namespace"] = json!(NAMESPACE);
    account.objects.put(&own).await?;
    let plane = Plane::in_pod(folder.path(), account.cluster.address(), &[])?;
    plane.readyz(200, &["source: ready"], SOON).await?;
    // Its own namespace is that of the mounted file: there is its Lease, and by RBAC nowhere else.
    plane.says(&["this process leads"], SOON).await?;
    let lease =
        json!({ "kind": "Lease", "metadata": { "name": "aether", "namespace": NAMESPACE } });
    account.objects.get(&lease).await.context("the Lease")?;
    let stream = Stream::open(plane.socket(), CALLER).await?;
    has(&stream, "10.244.9.1:", SOON).await?;
    let held = stream.now();
    let clusters = held.names("cluster");
    ensure!(clusters.contains("http:cart.shop.aether.internal"), "{clusters:?}");
    // It is never touched, without a word of it on the command line.
    ensure!(!clusters.iter().any(|name| name.contains(NAMESPACE)), "{clusters:?}");
    Ok(())
}

#[tokio::test]
#[ignore = "it takes the minute after which mounted files are read again"]
async fn the_token_and_the_authority_are_replaced_under_a_pod() -> Result<()> {
    let (mut account, folder) = cluster().await?;
    let plane = Plane::in_pod(folder.path(), account.cluster.address(), &[])?;
    plane.readyz(200, &["source: ready"], SOON).await?;
    let stream = Stream::open(plane.socket(), CALLER).await?;
    has(&stream, "10.244.9.1:", SOON).await?;
    let before = stream.quiet(Duration::from_millis(300), SOON).await?;

    // An account that is made anew makes all its tokens worthless, and an API server with another authority is not
    // believed: both are right again once the mounted files are.
    let own = json!({ "kind": "ServiceAccount", "metadata": { "name": "aether", "namespace": NAMESPACE } });
    account.objects.delete(&own).await?;
    account.objects.put(&own).await?;
    let authorities = account.cluster.replace_authority().await?;
    account.objects = Objects::new(account.cluster.client().await?);
    account.objects.put(&slice("cart-1", "cart", &["10.244.9.61"])).await?;
    plane.says(&["WARN", "aether::source"], SOON).await?;
    ensure!(stream.responses() == before && stream.now().ended.is_none());
    mount(folder.path(), "ca.crt", &authorities)?;
    mount_token(&account, folder.path()).await?;
    has(&stream, "10.244.9.61:", READ_AGAIN).await?;
    ensure!(stream.responses() == before + 1, "{} responses", stream.responses() - before);
    ensure!(stream.now().ended.is_none());
    plane.readyz(200, &["source: ready\n"], SOON).await?;
    println!("{}", it::process::tail(&plane.log(), 20));
    Ok(())
}
