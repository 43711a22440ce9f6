//! Another authority on demand.

use std::time::Instant;

use anyhow::{Result, ensure};
use it::eventually;

use crate::rotation::Load;
use crate::stage::{NAMESPACE, RBAC, SECRET, SOON, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_another_authority_gets_one_and_nothing_of_the_old_one_stays() -> Result<()> {
    let stage = Stage::start(RBAC).await?;
    let host = it::cluster::Claim::new(9444)?;
    let replica = stage.replica(host.address(), &["--webhook-ca-overlap", "1s"])?;
    stage.register(replica.address).await?;
    replica.ready().await?;
    stage.admits("first").await?;
    let (begun, load) = (Instant::now(), Load::start(stage.client.clone()));
    for value in ["one", "another"] {
        let (old, key) = (stage.held("tls.crt").await?, stage.held("tls.key").await?);
        let annotation = format!("aether.io/rotate={value}");
        let ask = ["-n", NAMESPACE, "annotate", "--overwrite", "secret", SECRET, &annotation];
        stage.cluster.kubectl(&ask, "").await?;
        let gone = eventually("another authority", SOON, || async {
            let data = stage.secrets().get(SECRET).await?.data.unwrap_or_default();
            // The first of what there was, and all of it: neither its certificates nor a key.
            let names: Vec<_> = data.keys().map(String::as_str).collect();
            ensure!(names == ["rotation-done", "tls.crt", "tls.key"], "{names:?}");
            ensure!(data["rotation-done"].0 == value.as_bytes());
            ensure!(data["tls.crt"].0 != old && data["tls.key"].0 != key, "the old one");
            let kept = &data["tls.crt"].0;
            ensure!(stage.bundles().await?.iter().all(|bundle| bundle == kept), "the old bundle");
            Ok(())
        });
        gone.await?;
        println!("{value}: changed after {:?}", begun.elapsed());
        replica.ready().await?;
    }
    println!("{} pods, none refused", load.end().await?);
    // The same value again, and none, ask for nothing.
    let kept = stage.held("tls.crt").await?;
    for annotation in ["aether.io/rotate=another", "aether.io/rotate-"] {
        let ask = ["-n", NAMESPACE, "annotate", "--overwrite", "secret", SECRET, annotation];
        stage.cluster.kubectl(&ask, "").await?;
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    ensure!(stage.held("tls.crt").await? == kept && stage.bundles().await?[0] == kept);
    let steps = r#"aether_webhook_authority_steps_total{step="rotate"}"#;
    ensure!(replica.plane.metric(steps).await? == Some(2.0));
    Ok(())
}
