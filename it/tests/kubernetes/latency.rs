//! How soon a change is on a connected stream.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use it::latency::Latencies;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

use crate::stage::{SOON, Stage};

/// How many changes are measured.
const CHANGES: usize = 200;

#[tokio::test]
async fn a_change_is_on_the_stream_soon_after_it_is_made() -> Result<()> {
    let stage = Stage::new().await?;
    let services: Api<Service> = Api::namespaced(stage.cluster.client().await?, "shop");
    let mut of_stream = Vec::new();
    let mut of_watch = Vec::new();
    let mut of_request = Vec::new();
    let mut watch = services.watch(&WatchParams::default().timeout(290), "0").await?.boxed();
    for n in 0..CHANGES {
        // HTTP or not: the Service's clusters become others, and its virtual host goes or comes.
        let (word, wanted) = if n % 2 == 0 { ("postgres", 1) } else { ("http", 2) };
        let change = json!({
            "kind": "Service",
            "metadata": { "name": "cart", "namespace": "shop", "annotations": { "aether.io/app-protocol": word } },
        });
        let begun = Instant::now();
        let changed = stage.objects.merge(&change).await?;
        of_request.push(begun.elapsed());
        let seen = tokio::time::timeout(SOON, async {
            loop {
                match watch.next().await.context("the watch ended")?? {
                    WatchEvent::Modified(service)
                        if service.metadata.resource_version
                            == changed.metadata.resource_version =>
                    {
                        return anyhow::Ok(Instant::now());
                    }
                    _ => {}
                }
            }
        });
        let has = |held: &it::delta::Held| held.names("virtual host").len() == wanted;
        let (seen, came) = tokio::join!(seen, stage.stream.until("the change", SOON, has));
        of_watch.push(seen??.saturating_duration_since(begun));
        of_stream.push(came?.saturating_duration_since(begun));
        tokio::time::sleep(Duration::from_millis(5 + n as u64 * 7 % 20)).await;
    }
    let (of_stream, of_watch, of_request) =
        (Latencies::new(of_stream), Latencies::new(of_watch), Latencies::new(of_request));
    for (name, all) in
        [("request", &of_request), ("watch of the API server", &of_watch), ("stream", &of_stream)]
    {
        let (median, tail) = (all.percentile(50), all.percentile(99));
        println!("{name}: median {median:?}, 99th percentile {tail:?}");
    }
    // What we add to the API server's own time. A test machine is busy, and a debug build slow.
    let added = of_stream.percentile(99).saturating_sub(of_watch.percentile(99));
    ensure!(added < Duration::from_millis(250), "{added:?} more than the watch itself");
    Ok(())
}
