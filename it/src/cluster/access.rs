//! Who may speak to a cluster, and how.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tempfile::NamedTempFile;

use super::Cluster;

/// Somebody known to a cluster: a user or a ServiceAccount.
#[derive(Debug, Clone)]
pub struct Identity {
    /// As the API server calls them: `system:serviceaccount:shop:cart`.
    pub name: String,
    /// Their bearer token.
    pub token: String,
}

impl Cluster {
    /// The administrator, of the group `system:masters`.
    pub fn admin(&self) -> Identity {
        self.admin.clone()
    }

    /// A user of the options.
    pub fn user(&self, name: &str) -> Result<Identity> {
        let found = self.users.iter().find(|user| user.name == name);
        found.cloned().with_context(|| format!("the options of this cluster name no user {name:?}"))
    }

    /// A ServiceAccount that exists, with a token of one hour.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Identity> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() },
            ..Default::default()
        };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let answer = answer.with_context(|| format!("a token of {namespace}/{name}"))?;
        let token = answer.status.context("a TokenRequest was answered without a token")?.token;
        Ok(Identity { name: format!("system:serviceaccount:{namespace}:{name}"), token })
    }

    /// A kubeconfig file with which this identity speaks to the API server.
    pub fn kubeconfig(&self, identity: &Identity) -> Result<PathBuf> {
        self.kubeconfig_at(identity, self.address())
    }

    /// The same through a [`Proxy`](super::Proxy) at this address. The serving certificate is good for 127.0.0.1, the
    /// node's address and the cluster's own.
    pub fn kubeconfig_at(&self, identity: &Identity, at: SocketAddr) -> Result<PathBuf> {
        let name: String = identity
            .name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .collect();
        let path =
            self.folder.path().join(format!("kubeconfig-{name}-{}-{}.json", at.ip(), at.port()));
        let mut cluster = json!({"server": format!("https://{at}")});
        if let Some(cluster) = cluster.as_object_mut() {
            let file = self.folder.path().join("ca.crt");
            cluster.insert("certificate-authority".into(), json!(file));
            if at.ip() != self.address().ip() {
                // Any name of the certificate will do, and this one is in all of them.
                cluster.insert("tls-server-name".into(), json!("localhost"));
            }
        }
        let file = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": identity.name, "user": {"token": identity.token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": identity.name}}],
            "current-context": "it",
        });
        // Whole at once: it is written anew each time that it is asked for, and others may be reading it.
        let fresh = NamedTempFile::new_in(self.folder.path())?;
        std::fs::write(fresh.path(), serde_json::to_vec_pretty(&file)?)?;
        fresh.persist(&path)?;
        Ok(path)
    }

    /// A client of the administrator. Its connections belong to the runtime that asks.
    pub async fn client(&self) -> Result<Client> {
        self.client_of(&self.admin).await
    }

    /// A client of this identity.
    pub async fn client_of(&self, identity: &Identity) -> Result<Client> {
        self.client_at(identity, self.address()).await
    }

    /// The same through a [`Proxy`](super::Proxy) at this address.
    pub async fn client_at(&self, identity: &Identity, at: SocketAddr) -> Result<Client> {
        let file = Kubeconfig::read_from(self.kubeconfig_at(identity, at)?)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }
}
