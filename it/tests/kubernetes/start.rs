//! Starts of which something is missing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use it::cluster::{Cluster, Options, Proxy};
use it::delta::Stream;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::json;

use crate::stage::{CALLER, SOON, calls, namespace};

#[tokio::test]
async fn started_while_the_api_server_is_away() -> Result<()> {
    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    calls(&objects).await?;
    let proxy = Proxy::to(cluster.address()).await?;
    proxy.refuse().await;
    let kubeconfig = cluster.kubeconfig_at(&cluster.admin(), proxy.address())?;
    let begun = Instant::now();
    let plane = Plane::start(&kubeconfig, &[])?;
    let address = proxy.address().to_string();
    let words = ["cannot be reached", &address, "Connection refused"];
    plane.says(&words, Duration::from_secs(5)).await?;
    ensure!(begun.elapsed() < Duration::from_secs(6), "said after {:?}", begun.elapsed());
    let told = plane.readyz(503, &["source: not ready", "Connection refused"], SOON).await?;
    ensure!(told.contains("no complete list yet of namespaces, nodes"), "{told}");
    // A proxy may connect, and gets nothing: not emptiness.
    let stream = Stream::open(plane.socket(), CALLER);
    let stream = tokio::time::timeout(SOON, stream).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    if let Ok(Ok(stream)) = &stream {
        ensure!(stream.responses() == 0, "{:?}", stream.now());
    }
    ensure!(plane.lines(&["cannot be reached"]).len() == 1, "said once: {}", plane.log());
    proxy.accept().await?;
    plane.readyz(200, &["source: ready"], SOON).await?;
    plane.says(&["is reached again, after"], SOON).await?;
    let stream = Stream::open(plane.socket(), CALLER).await?;
    let has = |held: &it::delta::Held| !held.names("listener").is_empty();
    stream.until("a listener", SOON, has).await?;
    Ok(())
}

#[tokio::test]
async fn a_server_without_streaming_lists_is_read_in_pages() -> Result<()> {
    let off = "--feature-gates=WatchList=false";
    let cluster = Cluster::start(Options::bare().api_server(off)).await?;
    let objects = Objects::new(cluster.client().await?);
    for n in 0..1100 {
        objects.put(&namespace(&format!("n-{n}"), json!({}))).await?;
    }
    let plane = Plane::start(&cluster.kubeconfig(&cluster.admin())?, &["--log", "debug"])?;
    plane.readyz(200, &["source: ready"], SOON).await?;
    let namespaces = plane.metric("aether_source_objects{kind=\"Namespace\"}").await?;
    // Those of Kubernetes itself are there too.
    ensure!(namespaces.is_some_and(|count| count >= 1103.0), "{namespaces:?}");
    ensure!(!plane.lines(&["the server streams no lists"]).is_empty(), "{}", plane.log());
    Ok(())
}
