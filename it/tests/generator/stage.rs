//! A bare cluster and `aether serve`, alone and so the leader.

use std::time::Duration;

use anyhow::{Context, Result};
use it::cluster::{Cluster, Options};
use it::eventually;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::{Value, json};

pub const SOON: Duration = Duration::from_secs(30);

pub struct Stage {
    pub plane: Plane,
    pub objects: Objects,
    pub cluster: Cluster,
}

impl Stage {
    pub async fn new() -> Result<Self> {
        let cluster = Cluster::start(Options::bare()).await?;
        let objects = Objects::new(cluster.client().await?);
        for namespace in ["aether-system", "spire-system", "shop"] {
            objects.put(&json!({ "kind": "Namespace", "metadata": { "name": namespace } })).await?;
        }
        let kubeconfig = cluster.kubeconfig(&cluster.admin())?;
        let plane = Plane::start(&kubeconfig, &["--own-namespace", "aether-system"])?;
        plane.says(&["this process leads"], SOON).await?;
        plane.readyz(200, &["source: ready"], SOON).await?;
        Ok(Self { plane, objects, cluster })
    }

    /// A managed pod of this ServiceAccount runs.
    pub async fn runs(&self, name: &str, account: &str, annotations: &Value) -> Result<()> {
        self.runs_in("shop", name, account, annotations).await
    }

    pub async fn runs_in(
        &self,
        namespace: &str,
        name: &str,
        account: &str,
        annotations: &Value,
    ) -> Result<()> {
        runs(&self.objects, namespace, name, account, annotations).await
    }

    /// Deletes an object.
    pub async fn gone(&self, kind: &str, name: &str) -> Result<()> {
        self.objects
            .delete(&json!({ "kind": kind, "metadata": { "name": name, "namespace": "shop" } }))
            .await
    }

    /// Waits for a Service.
    pub async fn service(&self, name: &str) -> Result<Value> {
        let object =
            json!({ "kind": "Service", "metadata": { "name": name, "namespace": "shop" } });
        let found =
            eventually(&format!("the Service {name}"), SOON, || self.objects.get(&object)).await;
        Ok(serde_json::to_value(found.with_context(|| self.plane.log())?)?)
    }

    /// Asks until it is so.
    pub async fn until<F: Future<Output = Result<()>>>(
        &self,
        what: &str,
        ask: impl FnMut() -> F,
    ) -> Result<()> {
        eventually(what, SOON, ask).await.with_context(|| it::process::tail(&self.plane.log(), 30))
    }
}

pub async fn runs(
    objects: &Objects,
    namespace: &str,
    name: &str,
    account: &str,
    annotations: &Value,
) -> Result<()> {
    let of = |name: &str| json!({ "name": name, "namespace": namespace });
    objects.put(&json!({ "kind": "ServiceAccount", "metadata": of(account) })).await?;
    let mut meta = of(name);
    meta["labels"] = json!({ "aether.io/managed": "true" });
    meta["annotations"] = annotations.clone();
    let pod = json!({
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [{ "name": "app", "image": "app" }],
            "serviceAccountName": account,
            "automountServiceAccountToken": false,
        },
    });
    objects.put(&pod).await?;
    let status = json!({
        "kind": "Pod",
        "metadata": of(name),
        "status": {
            "phase": "Running", "podIP": "10.244.0.9", "podIPs": [{ "ip": "10.244.0.9" }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    objects.merge_status(&status).await.map(drop)
}
