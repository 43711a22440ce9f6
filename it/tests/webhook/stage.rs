//! A cluster with the webhook registered, and pods made in it.

use std::path::Path;
use std::time::Duration;

use aether::source::manifest::{Form, documents};
use it::cluster::{Authority, Claim, Cluster, Options};
use it::process::{Process, Spec};
use it::{eventually, places};
use k8s_openapi::ByteString;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::audit::Audit;

/// The image of the gate, which nobody pulls: no pod here runs.
pub const IMAGE: &str = "registry.example/aether:1";

/// A cluster whose API server calls `aether serve`.
pub struct Stage {
    pub cluster: Cluster,
    pub client: Client,
    pub audit: Audit,
    pub authority: Authority,
    aether: Process,
    _address: Claim,
    _folder: TempDir,
}

impl Stage {
    /// Starts the API server and its controllers, then the webhook with these further options, and registers it.
    pub async fn start(options: &[&str]) -> Self {
        Self::with(Options::controlled(), options).await
    }

    /// The same with a cluster of these parts.
    pub async fn with(parts: Options, options: &[&str]) -> Self {
        let folder = places::folder().unwrap();
        let audit = Audit::new(folder.path());
        let parts = audit.flags().into_iter().fold(parts, |parts, flag| parts.api_server(&flag));
        let cluster = Cluster::start(parts).await.unwrap();
        let authority = Authority::new("the webhook's").unwrap();
        let address = Claim::new(9443).unwrap();
        let serving = authority.serving(&[&address.address().ip().to_string()]).unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("tls.crt"), &serving.certificate).unwrap();
        std::fs::write(path("tls.key"), &serving.key).unwrap();
        std::fs::create_dir(path("manifests")).unwrap();
        let listen = address.address().to_string();
        let (manifests, socket) = (path("manifests"), path("xds.sock"));
        let (cert, key) = (path("tls.crt"), path("tls.key"));
        let mut args = vec![
            "serve",
            "--manifests",
            &manifests,
            "--xds-address",
            "none",
            "--xds-socket",
            &socket,
            "--own-namespace",
            "aether-system",
            "--webhook-address",
            &listen,
            "--webhook-cert-mode",
            "files",
            "--webhook-cert",
            &cert,
            "--webhook-key",
            &key,
            "--webhook-drain",
            "0",
            "--identity-gate-image",
            IMAGE,
            "--admin-address",
            "none",
        ];
        args.extend(options);
        let spec =
            Spec::new(&places::program("aether").unwrap(), args, Path::new(&path("aether.log")));
        let aether = Process::start(&spec).unwrap();
        let client = cluster.client().await.unwrap();
        let stage =
            Self { cluster, client, audit, authority, aether, _address: address, _folder: folder };
        stage.listening(&listen).await;
        stage.register(&listen).await;
        stage
    }

    async fn listening(&self, address: &str) {
        let ask = || async { Ok(tokio::net::TcpStream::connect(address).await?) };
        let connected = eventually("the webhook", Duration::from_secs(30), ask).await;
        connected.unwrap_or_else(|error| panic!("{error:#}\n{}", self.aether.log()));
    }

    /// Registers the manifest of `charts/` with an address in place of the Service, and sees it act.
    async fn register(&self, address: &str) {
        let text = include_str!("../../../charts/manifests/webhook.yaml");
        let json = documents(text, Form::Yaml).remove(0).json.unwrap();
        let mut configuration: Value = serde_json::from_str(&json).unwrap();
        let bundle = ByteString(self.authority.pem().into_bytes());
        for entry in configuration["webhooks"].as_array_mut().unwrap() {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            entry["clientConfig"] =
                json!({ "url": format!("https://{address}{path}"), "caBundle": bundle });
        }
        self.cluster.apply(&configuration.to_string()).await.unwrap();
        self.namespace("probe", json!({})).await;
        let ask = || async {
            let pod = pod("probe", json!({ "aether.io/managed": "true" }));
            let dry = self.create_at("/api/v1/namespaces/probe/pods?dryRun=All", &pod).await?;
            anyhow::ensure!(dry["spec"].get("dnsConfig").is_some(), "it is not called yet");
            Ok(())
        };
        let acts = eventually("the registration", Duration::from_secs(30), ask).await;
        acts.unwrap_or_else(|error| panic!("{error:#}\n{}", self.aether.log()));
    }

    /// Makes a namespace with these labels, and waits for its ServiceAccount.
    pub async fn namespace(&self, name: &str, labels: Value) {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } });
        self.cluster.apply(&object.to_string()).await.unwrap();
        self.cluster.wait_for_namespace(name).await.unwrap();
    }

    /// Makes a pod and returns it as it is stored.
    pub async fn create(&self, namespace: &str, pod: &Value) -> anyhow::Result<Value> {
        self.create_at(&format!("/api/v1/namespaces/{namespace}/pods"), pod).await
    }

    async fn create_at(&self, path: &str, pod: &Value) -> anyhow::Result<Value> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(pod)?)?;
        Ok(self.client.request(request).await?)
    }

    /// What the webhook wrote so far.
    pub fn log(&self) -> String {
        self.aether.log()
    }
}

/// A pod of this name with these labels.
pub fn pod(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": labels },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    })
}

/// The same with its specification changed by merging.
pub fn pod_with(name: &str, labels: Value, spec: &Value) -> Value {
    let mut pod = pod(name, labels);
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// The names of the init containers.
pub fn inits(pod: &Value) -> Vec<&str> {
    let list = pod["spec"]["initContainers"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|container| container["name"].as_str().unwrap()).collect()
}
