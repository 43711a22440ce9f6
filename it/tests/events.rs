//! Events on real objects: seen with `kubectl describe`, told once by however many replicas, and a refusal by a proxy in
//! its own words.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use envoy_types::pb::google::rpc::Status;
use hyper_util::rt::TokioIo;
use it::cluster::{Cluster, Options};
use it::eventually;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_stream::wrappers::UnboundedReceiverStream;

const SOON: Duration = Duration::from_secs(30);

struct Stage {
    replicas: Vec<Plane>,
    objects: Objects,
    cluster: Cluster,
}

async fn stage(replicas: usize) -> Result<Stage> {
    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    for namespace in ["aether-system", "shop"] {
        objects.put(&json!({ "kind": "Namespace", "metadata": { "name": namespace } })).await?;
    }
    let kubeconfig = cluster.kubeconfig(&cluster.admin())?;
    let mut all = Vec::new();
    for _ in 0..replicas {
        let flags = ["--own-namespace", "aether-system", "--generate-services", "false"];
        let plane = Plane::start(&kubeconfig, &flags)?;
        plane.readyz_soon().await?;
        all.push(plane);
    }
    Ok(Stage { replicas: all, objects, cluster })
}

trait Soon {
    async fn readyz_soon(&self) -> Result<()>;
}

impl Soon for Plane {
    async fn readyz_soon(&self) -> Result<()> {
        self.says(&["xDS on a Unix socket"], SOON).await?;
        self.readyz(200, &["source: ready"], SOON).await.map(drop)
    }
}

impl Stage {
    async fn events(&self) -> Result<Vec<Value>> {
        let text = self
            .cluster
            .kubectl(&["get", "events.events.k8s.io", "-n", "shop", "-o", "json"], "")
            .await?;
        let list: Value = serde_json::from_str(&text)?;
        // The API server tells of things too, as of an address that is not allocated yet.
        let ours = |event: &Value| event["reportingController"] == "aether.io/control-plane";
        let mut events = list["items"].as_array().cloned().unwrap_or_default();
        events.retain(ours);
        Ok(events)
    }

    async fn described(&self, kind: &str, name: &str, words: &[&str]) -> Result<String> {
        let what = format!("{words:?} of {kind} {name}");
        let asked = eventually(&what, SOON, || async {
            let told = self.cluster.kubectl(&["describe", kind, name, "-n", "shop"], "").await?;
            ensure!(words.iter().all(|word| told.contains(word)), "{told}");
            Ok(told)
        });
        asked.await.with_context(|| it::process::tail(&self.replicas[0].log(), 30))
    }
}

fn service(name: &str, annotations: Value) -> Value {
    json!({
        "kind": "Service",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": { "aether.io/mesh-service": "true" },
            "annotations": annotations,
        },
        "spec": { "ports": [{ "port": 80 }] },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_stands_on_the_object_once() -> Result<()> {
    let mut stage = stage(2).await?;
    stage.objects.put(&service("cart", json!({}))).await?;
    stage.objects.put(&service("twin", json!({ "aether.io/service": "cart" }))).await?;
    stage.objects.put(&service("wrong", json!({ "aether.io/port": "no" }))).await?;
    let long = "é".repeat(3000);
    stage.objects.put(&service("long", json!({ "aether.io/service": long }))).await?;
    stage.described("service", "twin", &["Warning", "ConflictingKey", "shop/cart"]).await?;
    stage
        .described(
            "service",
            "wrong",
            &["InvalidValue", "metadata.annotations[aether.io/port]: \"no\""],
        )
        .await?;
    stage.described("service", "long", &["InvalidValue", "is no mesh name"]).await?;
    // Both replicas know of it, and one tells of it; another leader tells nothing anew.
    let count = stage.events().await?.len();
    ensure!(count == 3, "{:#?}", stage.events().await?);
    let leads = stage.replicas[0].metric("aether_leader").await? == Some(1.0);
    let leader = usize::from(!leads);
    stage.replicas[leader].stop(SOON)?;
    let other = &stage.replicas[1 - leader];
    other.says(&["this process leads"], SOON).await?;
    let repeated = "aether_events_total{reason=\"ConflictingKey\",outcome=\"repeated\"}";
    eventually("the new leader looks", SOON, || async {
        ensure!(other.metric(repeated).await? == Some(1.0), "{}", other.get("/metrics").await?.1);
        Ok(())
    })
    .await?;
    let events = stage.events().await?;
    ensure!(events.len() == 3, "{events:#?}");
    let twin = events.iter().find(|event| event["reason"] == "ConflictingKey").context("gone")?;
    ensure!(twin["series"]["count"] == 2, "{twin}");
    ensure!(twin["action"] == "Capture", "{twin}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_stands_on_the_pod_in_the_proxys_words() -> Result<()> {
    let stage = stage(2).await?;
    let account =
        json!({ "kind": "ServiceAccount", "metadata": { "name": "default", "namespace": "shop" } });
    stage.objects.put(&account).await?;
    let pod = json!({
        "kind": "Pod",
        "metadata": { "name": "caller", "namespace": "shop", "labels": { "aether.io/managed": "true" } },
        "spec": { "containers": [{ "name": "app", "image": "app" }], "automountServiceAccountToken": false },
    });
    stage.objects.put(&pod).await?;
    // By the replica that does not lead.
    let leads = stage.replicas[0].metric("aether_leader").await? == Some(1.0);
    let other = &stage.replicas[usize::from(leads)];
    refuse(other, "pod/shop/caller", "no such filter: aether.test").await?;
    let words =
        ["Warning", "RefusedByProxy", "its proxy refused clusters", "no such filter: aether.test"];
    stage.described("pod", "caller", &words).await?;
    Ok(())
}

/// Asks for clusters as a proxy, and refuses them.
async fn refuse(plane: &Plane, node: &str, words: &str) -> Result<()> {
    let path = plane.socket().to_owned();
    let connect = tower::service_fn(move |_| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    });
    let channel = tonic::transport::Endpoint::from_static("http://unix")
        .connect_with_connector(connect)
        .await?;
    let (say, hear) = tokio::sync::mpsc::unbounded_channel();
    let request = DeltaDiscoveryRequest {
        node: Some(Node { id: node.to_owned(), ..Node::default() }),
        type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned(),
        ..Default::default()
    };
    say.send(request.clone())?;
    let mut client = Ads::new(channel);
    let answers = client.delta_aggregated_resources(UnboundedReceiverStream::new(hear)).await?;
    let mut answers = answers.into_inner();
    let answer = tokio::time::timeout(SOON, answers.message()).await??.context("no answer")?;
    say.send(DeltaDiscoveryRequest {
        response_nonce: answer.nonce,
        error_detail: Some(Status { code: 3, message: words.to_owned(), ..Status::default() }),
        ..request
    })?;
    let refusals = "aether_xds_refusals_total{type=\"CDS\"}";
    eventually("the refusal is heard", SOON, || async {
        ensure!(plane.metric(refusals).await? == Some(1.0), "{}", plane.get("/metrics").await?.1);
        Ok(())
    })
    .await
}
