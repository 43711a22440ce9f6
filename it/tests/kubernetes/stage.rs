//! A cluster, `aether serve` that follows it, and a proxy that is connected.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::cluster::{Cluster, Options, Proxy};
use it::delta::Stream;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::{Value, json};

/// Longer than anything takes that is to happen within seconds, on a machine that is busy.
pub const SOON: Duration = Duration::from_secs(30);

/// The proxy's node id.
pub const CALLER: &str = "pod/shop/caller";

/// Everything a scene needs.
pub struct Stage {
    pub stream: Stream,
    pub plane: Plane,
    /// Between aether and the API server.
    pub proxy: Proxy,
    pub objects: Objects,
    pub cluster: Cluster,
}

impl Stage {
    /// A bare cluster with a small world in it, aether, and a proxy that has its full configuration.
    pub async fn new() -> Result<Self> {
        Self::with(Options::bare(), &[]).await
    }

    pub async fn with(options: Options, flags: &[&str]) -> Result<Self> {
        let cluster = Cluster::start(options).await?;
        let objects = Objects::new(cluster.client().await?);
        world(&objects).await?;
        let proxy = Proxy::to(cluster.address()).await?;
        let kubeconfig = cluster.kubeconfig_at(&cluster.admin(), proxy.address())?;
        let plane = Plane::start(&kubeconfig, flags)?;
        plane.says(&["xDS on a Unix socket"], SOON).await?;
        plane.readyz(200, &["source: ready"], SOON).await?;
        let stream = Stream::open(plane.socket(), CALLER).await?;
        let full = |held: &it::delta::Held| {
            held.endpoints("shop/cart:80").is_some_and(|all| all.len() == 2)
                && held.names("virtual host").len() == 2
                && held.names("listener").len() == 1
        };
        stream.until("the whole configuration", SOON, full).await?;
        stream.quiet(Duration::from_millis(300), SOON).await?;
        Ok(Self { stream, plane, proxy, objects, cluster })
    }

    /// A kubeconfig past the proxy.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        self.cluster.kubeconfig(&self.cluster.admin())
    }

    /// Changes an endpoint, and waits until the proxy has the change: the source follows.
    pub async fn follows(&self, octet: u8, limit: Duration) -> Result<()> {
        let address = format!("10.244.9.{octet}");
        self.objects.put(&slice("cart-1", "cart", &[&address])).await?;
        let has = |held: &it::delta::Held| {
            held.endpoints("shop/cart:80")
                .is_some_and(|all| all.iter().any(|one| one.contains(&address)))
        };
        self.stream.until("a change of an endpoint", limit, has).await.map(drop)
    }

    /// The stream is as it was: open, and without a response since there were this many.
    pub fn untouched(&self, responses: usize) -> Result<()> {
        let now = self.stream.now();
        ensure!(now.ended.is_none(), "the stream ended: {:?}", now.ended);
        ensure!(
            now.responses == responses,
            "{} responses that nobody needed",
            now.responses - responses
        );
        Ok(())
    }
}

/// The pod that calls, and what it needs; no controller makes the account here.
pub async fn calls(objects: &Objects) -> Result<()> {
    objects.put(&namespace("shop", json!({}))).await?;
    objects.put(&json!({ "kind": "ServiceAccount", "metadata": { "name": "default", "namespace": "shop" } })).await?;
    objects.put(&pod("caller", json!({ "aether.io/managed": "true" }), json!({}))).await
}

/// A Service with two endpoints, and the pod that calls it.
pub async fn world(objects: &Objects) -> Result<()> {
    calls(objects).await?;
    objects.put(&service("cart", json!({}), json!({}))).await?;
    objects.put(&slice("cart-1", "cart", &["10.244.9.1", "10.244.9.2"])).await.context("slice")
}

pub fn namespace(name: &str, labels: Value) -> Value {
    json!({ "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

pub fn pod(name: &str, labels: Value, annotations: Value) -> Value {
    json!({
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "shop", "labels": labels, "annotations": annotations },
        "spec": { "containers": [{ "name": "app", "image": "app" }], "automountServiceAccountToken": false },
    })
}

/// A labelled Service with the HTTP port 80; `spec` is laid over that.
pub fn service(name: &str, annotations: Value, spec: Value) -> Value {
    let mut object = json!({
        "kind": "Service",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": { "aether.io/mesh-service": "true" },
            "annotations": annotations,
        },
        "spec": { "ports": [{ "name": "http", "port": 80, "appProtocol": "http" }] },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// A slice of a Service with these addresses, its port `http` being 8080.
pub fn slice(name: &str, service: &str, addresses: &[&str]) -> Value {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({ "addresses": [address], "conditions": { "ready": true } }))
        .collect();
    json!({
        "kind": "EndpointSlice",
        "metadata": { "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": service } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        "endpoints": endpoints,
    })
}
