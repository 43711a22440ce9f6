//! What happens in a cluster all the time and is no change of the mesh.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::stage::{SOON, Stage};

#[tokio::test]
async fn heartbeats_and_probes_are_no_changes() -> Result<()> {
    let stage = Stage::new().await?;
    let node = json!({
        "kind": "Node",
        "metadata": { "name": "n1", "labels": { "topology.kubernetes.io/zone": "a" } },
    });
    stage.objects.put(&node).await?;
    stage.follows(11, SOON).await?;
    let before = stage.stream.quiet(Duration::from_millis(500), SOON).await?;
    let generation = stage.plane.metric("aether_snapshot_generation").await?;
    let updates = stage.plane.metric("aether_source_updates_total").await?;
    for round in 0..30 {
        let time = format!("2026-11-30T11:45:{round:02}Z");
        let ready = json!([{ "type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time }]);
        let status = json!({ "kind": "Node", "metadata": { "name": "n1" }, "status": { "conditions": ready } });
        stage.objects.merge_status(&status).await?;
        let lease = json!({
            "kind": "Lease",
            "metadata": { "name": "n1", "namespace": "shop" },
            "spec": { "holderIdentity": format!("n{round}") },
        });
        stage.objects.put(&lease).await?;
        let probed = json!([{ "type": "Initialized", "status": "True", "lastProbeTime": time, "message": time }]);
        let status = json!({
            "kind": "Pod",
            "metadata": { "name": "caller", "namespace": "shop" },
            "status": { "conditions": probed, "startTime": time },
        });
        stage.objects.merge_status(&status).await?;
        let foreign = json!({
            "kind": "Service",
            "metadata": { "name": "cart", "namespace": "shop", "annotations": { "example.com/seen": time } },
        });
        stage.objects.merge(&foreign).await?;
    }
    // What came after it is there, so all of it was seen.
    stage.follows(12, SOON).await?;
    let after = stage.stream.quiet(Duration::from_millis(500), SOON).await?;
    ensure!(after == before + 1, "{} responses", after - before);
    let later = stage.plane.metric("aether_snapshot_generation").await?;
    ensure!(later == generation.map(|one| one + 1.0), "snapshots: {generation:?}, then {later:?}");
    let later = stage.plane.metric("aether_source_updates_total").await?;
    ensure!(later == updates.map(|one| one + 1.0), "updates: {updates:?}, then {later:?}");
    Ok(())
}
