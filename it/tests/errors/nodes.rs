//! Proxies that are not known: refused, or left waiting.

use anyhow::Result;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::loaded::{Loaded, agrees};
use tonic::{Code, Status};

use super::{Rig, SOON, pod, service};

/// How streams of both protocols end for this node id.
async fn refusals(rig: &Rig, id: &'static str) -> Result<Vec<Status>> {
    let address = format!("http://{}", Aether::tcp());
    let streams = async move {
        let mut client = AggregatedDiscoveryServiceClient::connect(address).await?;
        let node = Some(Node { id: id.to_owned(), ..Node::default() });
        let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned();
        let first = DiscoveryRequest {
            node: node.clone(),
            type_url: type_url.clone(),
            ..Default::default()
        };
        // The client's direction stays open: it is the server that ends the stream.
        let open = |first| {
            tokio_stream::StreamExt::chain(tokio_stream::iter([first]), tokio_stream::pending())
        };
        let mut sotw = client.stream_aggregated_resources(open(first)).await?.into_inner();
        let first = DeltaDiscoveryRequest { node, type_url, ..Default::default() };
        let chain =
            tokio_stream::StreamExt::chain(tokio_stream::iter([first]), tokio_stream::pending());
        let mut delta = client.delta_aggregated_resources(chain).await?.into_inner();
        Ok(vec![sotw.message().await.unwrap_err(), delta.message().await.unwrap_err()])
    };
    tokio::time::timeout(SOON, rig.net.node().run(streams)).await?
}

#[tokio::test]
async fn a_wrong_node_id_is_refused_with_both_forms_that_there_are() -> Result<()> {
    let mut rig = Rig::start().await?;
    for id in [
        "",
        "web",
        "sidecar~10.0.0.1~web.shop",
        "pod/shop",
        "pod/shop/web/0",
        "pod/Shop/web",
        "pod//web",
        "node/",
        "node/worker/1",
    ] {
        for status in refusals(&rig, id).await? {
            assert_eq!(status.code(), Code::InvalidArgument, "{id}: {status:?}");
            for words in ["pod/<namespace>/<name>", "node/<node name>", &format!("{id:?}")] {
                assert!(status.message().contains(words), "{id}: {words} in {status:?}");
            }
        }
    }
    rig.says(0, &["stream refused", "sidecar~10.0.0.1~web.shop"]).await?;

    // Whoever runs an Envoy reads it there.
    for protocol in ["delta", "sotw"] {
        let options = ["--protocol", protocol];
        let bootstrap = rig.aether.bootstrap("pod/shop/caller", Over::Tcp, &options)?;
        let wrong = bootstrap.replace("pod/shop/caller", "web-0");
        let pod = rig.net.pod()?;
        let mut envoy = Envoy::start(&pod, &wrong)?;
        let said = it::eventually("Envoy says why", SOON, || async {
            let log = envoy.log();
            let line = log.lines().find(|line| line.contains("closed") && line.contains("web-0"));
            line.map(str::to_owned).ok_or_else(|| anyhow::anyhow!("nothing in its log:\n{log}"))
        });
        let said = said.await?;
        for words in ["3,", "pod/<namespace>/<name>", "node/<node name>"] {
            assert!(said.contains(words), "{words} in {said}");
        }
        envoy.process().must_run()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_pod_that_waits_gets_nothing_and_is_served_when_its_pod_appears() -> Result<()> {
    let mut rig = Rig::start().await?;
    let mut late = Vec::new();
    for (protocol, over) in [("delta", Over::Socket), ("sotw", Over::Tcp)] {
        let pod = rig.net.pod()?;
        let bootstrap = rig.aether.bootstrap("pod/shop/late", over, &["--protocol", protocol])?;
        let envoy = Envoy::start(&pod, &bootstrap)?;
        envoy.stat_is("control_plane.connected_state", SOON, |state| state == 1).await?;
        late.push((envoy, pod));
    }
    rig.says(0, &["INFO", "pod/shop/late", "the proxy waits: its node is not known"]).await?;
    // Not even emptiness: an update with nothing in it would make it live, and wipe what an earlier server gave.
    for (step, file) in
        [("unknown", None), ("not managed", Some(pod("late", 2).label("aether.io/managed", "no")))]
    {
        if let Some(object) = file {
            rig.world.put("late", &[object])?;
        }
        // Another one is served a change meanwhile.
        rig.world.put("step", &service(&step.replace(' ', "-"), 4, 80))?;
        rig.follows().await?;
        for (envoy, _) in &late {
            assert_ne!(envoy.admin("/ready").await.unwrap_or_default().trim(), "LIVE", "{step}");
            let updates = envoy.stats("(lds|cds).update_(success|rejected)").await?;
            assert!(updates.values().all(|count| *count == 0), "{step}: {updates:?}");
            assert_eq!(envoy.listeners().await?, Vec::<String>::new(), "{step}");
        }
    }
    rig.world.put("late", &[pod("late", 2)])?;
    let rendered = Loaded::rendered(rig.world.path(), "pod/shop/late", &[])?;
    for (envoy, _) in &mut late {
        envoy.ready(SOON).await?;
        agrees(envoy, &rendered, SOON).await?;
    }

    // Its pod goes: it keeps what it has. The pod comes back: it gets what is new.
    rig.world.remove("late")?;
    rig.world.put("step", &service("later", 5, 80))?;
    rig.follows().await?;
    // The pod's file takes a moment to be given up.
    let waits = || async {
        let render = Loaded::rendered(rig.world.path(), "pod/shop/late", &[]);
        anyhow::ensure!(render.is_err(), "it does not wait yet");
        Ok(())
    };
    it::eventually("the pod is gone", SOON, waits).await?;
    for (envoy, _) in &late {
        assert_eq!(
            Loaded::of_dump(&envoy.config_dump().await?)?.names("listeners"),
            ["capture_shop_late"]
        );
    }
    rig.world.put("late", &[pod("late", 2)])?;
    let rendered = Loaded::rendered(rig.world.path(), "pod/shop/late", &[])?;
    for (envoy, _) in &late {
        agrees(envoy, &rendered, SOON).await?;
    }
    Ok(())
}
