//! A cluster and two replicas, each behind a proxy of its own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::cluster::{Cluster, Options, Proxy};
use it::eventually;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::{Value, json};

pub const SOON: Duration = Duration::from_secs(30);
/// The lease duration of the tests, in milliseconds.
pub const DURATION: u64 = 4000;
/// Their renew deadline.
pub const DEADLINE: u64 = 2000;

/// The time of an issue's words where `AETHER_IT_LONG` is set, and a shorter one otherwise.
pub fn long(short: Duration, long: Duration) -> Duration {
    if std::env::var_os("AETHER_IT_LONG").is_some() { long } else { short }
}

pub struct Stage {
    pub replicas: Vec<Plane>,
    pub proxies: Vec<Proxy>,
    pub objects: Objects,
    _cluster: Cluster,
}

impl Stage {
    pub async fn new(flags: &[&str]) -> Result<Self> {
        let cluster = Cluster::start(Options::bare()).await?;
        let objects = Objects::new(cluster.client().await?);
        for namespace in ["aether-system", "shop"] {
            objects.put(&json!({ "kind": "Namespace", "metadata": { "name": namespace } })).await?;
        }
        let (mut replicas, mut proxies) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let proxy = Proxy::to(cluster.address()).await?;
            let kubeconfig = cluster.kubeconfig_at(&cluster.admin(), proxy.address())?;
            let mut all = vec!["--own-namespace", "aether-system"];
            if flags.is_empty() {
                all.extend(["--lease-duration", "4s", "--lease-renew-deadline", "2s"]);
                all.extend(["--lease-renew-interval", "500ms"]);
            }
            all.extend(flags);
            let plane = Plane::start(&kubeconfig, &all)?;
            plane.says(&["xDS on a Unix socket"], SOON).await?;
            plane.readyz(200, &["source: ready"], SOON).await?;
            replicas.push(plane);
            proxies.push(proxy);
        }
        Ok(Self { replicas, proxies, objects, _cluster: cluster })
    }

    async fn leads(&self, replica: usize) -> Result<bool> {
        Ok(self.replicas[replica].metric("aether_leader").await? == Some(1.0))
    }

    /// The replica that leads.
    pub async fn leader(&self) -> Result<usize> {
        eventually("a leader", SOON, || async {
            for replica in 0..self.replicas.len() {
                // One that does not run, or is cut off, does not answer or does not lead.
                if self.leads(replica).await.unwrap_or(false) {
                    return Ok(replica);
                }
            }
            anyhow::bail!("nobody leads")
        })
        .await
    }

    /// Waits until a replica that was away can lead again.
    pub async fn candidate(&self, replica: usize) -> Result<()> {
        self.replicas[replica]
            .readyz(200, &["source: ready", "leader: ready"], SOON)
            .await
            .map(drop)
    }

    /// Looks all the time; whether one of them led throughout, and an error where two did.
    pub async fn never_two(&self, time: Duration) -> Result<bool> {
        let begun = Instant::now();
        let mut always = true;
        while begun.elapsed() < time {
            // A hand-over between two looks is no overlap: the first is asked again.
            let first = self.leads(0).await?;
            let second = self.leads(1).await?;
            ensure!(!(first && second && self.leads(0).await?), "both lead");
            always &= first || second;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(always)
    }

    pub async fn lease(&self) -> Result<Value> {
        let name = json!({ "kind": "Lease", "metadata": { "name": "aether", "namespace": "aether-system" } });
        Ok(serde_json::to_value(self.objects.get(&name).await?)?)
    }

    /// A managed pod of this ServiceAccount runs.
    pub async fn runs(&self, name: &str, account: &str) -> Result<()> {
        let object = json!({ "kind": "ServiceAccount", "metadata": { "name": account, "namespace": "shop" } });
        self.objects.put(&object).await?;
        self.objects.put(&pod(name, account)).await?;
        running(&self.objects, name).await
    }

    /// Waits for a Service.
    pub async fn service(&self, name: &str) -> Result<Value> {
        let object =
            json!({ "kind": "Service", "metadata": { "name": name, "namespace": "shop" } });
        let found =
            eventually(&format!("the Service {name}"), SOON, || self.objects.get(&object)).await;
        let logs = || self.replicas.iter().map(Plane::log).collect::<Vec<_>>().join("\n---\n");
        Ok(serde_json::to_value(found.with_context(logs)?)?)
    }
}

/// A managed pod of this ServiceAccount.
fn pod(name: &str, account: &str) -> Value {
    json!({
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "shop", "labels": { "aether.io/managed": "true" } },
        "spec": {
            "containers": [{ "name": "app", "image": "app" }],
            "serviceAccountName": account,
            "automountServiceAccountToken": false,
        },
    })
}

/// Says, as a kubelet would, that a pod runs.
async fn running(objects: &Objects, name: &str) -> Result<()> {
    let status = json!({
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "shop" },
        "status": {
            "phase": "Running", "podIP": "10.244.0.9", "podIPs": [{ "ip": "10.244.0.9" }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    objects.merge_status(&status).await.map(drop)
}
