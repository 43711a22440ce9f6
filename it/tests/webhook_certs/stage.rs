//! A cluster, and replicas that keep a certificate for its webhook.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use aether::source::manifest::{Form, documents};
use anyhow::{Context, Result, ensure};
use it::cluster::{Claim, Cluster, Options};
use it::eventually;
use it::plane::Plane;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};

const WEBHOOK: &str = include_str!("../../../charts/manifests/webhook.yaml");
pub use it::account::{NAMESPACE, RBAC};

pub const SECRET: &str = "aether-webhook-ca";
pub const SOON: Duration = Duration::from_secs(30);
/// "Within seconds", on a machine that is busy with other tests.
pub const SECONDS: Duration = Duration::from_secs(10);

/// The namespaces of the tests, and accounts for their pods, which no controller makes here.
const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop, labels: { aether.io/managed: "true" } }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: default, namespace: shop }
"#;

pub struct Stage {
    pub cluster: Cluster,
    pub client: Client,
    kubeconfig: PathBuf,
}

/// A replica, and where its webhook listens.
pub struct Replica {
    pub plane: Plane,
    pub address: SocketAddr,
    _claim: Claim,
}

impl Stage {
    /// A cluster where the program may do these things.
    pub async fn start(rbac: &str) -> Result<Self> {
        let cluster = Cluster::start(Options::bare()).await?;
        for objects in [rbac, SHOP] {
            cluster.apply(objects).await?;
        }
        let account = cluster.service_account(NAMESPACE, "aether").await?;
        let kubeconfig = cluster.kubeconfig(&account)?;
        let client = cluster.client().await?;
        Ok(Self { cluster, client, kubeconfig })
    }

    /// A replica with these further options, whose certificate is for `host` too.
    pub fn replica(&self, host: SocketAddr, options: &[&str]) -> Result<Replica> {
        let claim = Claim::new(9443)?;
        let address = claim.address();
        let (listen, names) = (address.to_string(), format!("{},{}", host.ip(), address.ip()));
        let mut all = vec!["--own-namespace", NAMESPACE, "--webhook-address", &listen];
        all.extend(["--webhook-names", &names, "--webhook-drain", "1s"]);
        all.extend(["--lease-duration", "3s", "--lease-renew-deadline", "1500ms"]);
        all.extend(["--lease-renew-interval", "500ms"]);
        all.extend(options);
        let plane = Plane::start(&self.kubeconfig, &all)?;
        Ok(Replica { plane, address, _claim: claim })
    }

    /// Registers the manifest of `charts/` with an address in place of the Service, and a policy under which a failure
    /// shows.
    pub async fn register(&self, address: SocketAddr) -> Result<()> {
        let json = documents(WEBHOOK, Form::Yaml).remove(0).json.unwrap();
        let mut configuration: Value = serde_json::from_str(&json)?;
        for entry in configuration["webhooks"].as_array_mut().unwrap() {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            entry["clientConfig"] = json!({ "url": format!("https://{address}{path}") });
            entry["failurePolicy"] = "Fail".into();
        }
        self.cluster.apply(&configuration.to_string()).await.map(drop)
    }

    pub fn configurations(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The bundles of the two entries.
    pub async fn bundles(&self) -> Result<Vec<Vec<u8>>> {
        let object = self.configurations().get("aether").await?;
        let entries = object.webhooks.unwrap_or_default().into_iter();
        Ok(entries.map(|entry| entry.client_config.ca_bundle.unwrap_or_default().0).collect())
    }

    /// A value of the Secret.
    pub async fn held(&self, key: &str) -> Result<Vec<u8>> {
        let data = self.secrets().get(SECRET).await?.data.unwrap_or_default();
        Ok(data.get(key).with_context(|| format!("the Secret has no {key}"))?.0.clone())
    }

    /// Changes the configuration by another hand, with these JSON Patch operations.
    pub async fn overwrite(&self, operations: &Value) -> Result<()> {
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/aether?fieldManager=another";
        let request =
            http::Request::patch(path).header("content-type", "application/json-patch+json");
        self.client.request::<Value>(request.body(serde_json::to_vec(operations)?)?).await?;
        Ok(())
    }

    pub async fn delete_secret(&self) -> Result<()> {
        self.secrets().delete(SECRET, &DeleteParams::default()).await?;
        Ok(())
    }

    /// A pod, created in the managed namespace; whether it came through our hands.
    pub async fn pod(&self, name: &str) -> Result<Value> {
        create(&self.client, name).await
    }

    /// Waits until a pod is admitted.
    pub async fn admits(&self, name: &str) -> Result<()> {
        let asked = eventually("an admitted pod", SECONDS, || async {
            let pod = self.pod(name).await?;
            ensure!(pod["metadata"]["labels"]["aether.io/managed"] == "true", "{pod}");
            Ok(())
        });
        asked.await
    }
}

/// Creates a pod and returns it as it is stored.
pub async fn create(client: &Client, name: &str) -> Result<Value> {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{ "name": "web", "image": "web:1" }],
        },
    });
    let request = http::Request::post("/api/v1/namespaces/shop/pods");
    let request = request.header("content-type", "application/json");
    Ok(client.request(request.body(serde_json::to_vec(&pod)?)?).await?)
}

impl Replica {
    /// Waits until its webhook says this of itself.
    pub async fn webhook(&self, status: u16, words: &[&str], limit: Duration) -> Result<String> {
        let what = format!("{status} {words:?} of the webhook");
        let asked = eventually(&what, limit, || async {
            let (found, text) = self.plane.get("/readyz/webhook").await?;
            let right = found.as_u16() == status && words.iter().all(|word| text.contains(word));
            ensure!(right, "{found}: {text}");
            Ok(text)
        });
        asked.await.with_context(|| it::process::tail(&self.plane.log(), 30))
    }

    /// Waits until API servers trust it.
    pub async fn ready(&self) -> Result<()> {
        self.webhook(200, &["webhook: ready\n"], SOON).await.map(drop)
    }

    /// Whether it leads.
    pub async fn leads(&self) -> Result<bool> {
        Ok(self.plane.metric("aether_leader").await? == Some(1.0))
    }
}
