//! A cluster in which `aether serve` runs as its own ServiceAccount.

use std::path::PathBuf;

use anyhow::Result;

use crate::cluster::{Cluster, Options};
use crate::objects::Objects;

/// What `aether serve` may do.
pub const RBAC: &str = include_str!("../../charts/manifests/rbac.yaml");
/// The namespace of its ServiceAccount, by those manifests.
pub const NAMESPACE: &str = "aether-system";

/// A cluster that has these permissions, and what speaks to it.
#[derive(Debug)]
pub struct Account {
    /// That of the ServiceAccount.
    pub kubeconfig: PathBuf,
    /// Writes objects as the administrator.
    pub objects: Objects,
    /// The cluster.
    pub cluster: Cluster,
}

impl Account {
    /// Starts the cluster and applies the manifests.
    pub async fn start(options: Options) -> Result<Self> {
        let cluster = Cluster::start(options).await?;
        let objects = Objects::new(cluster.client().await?);
        cluster.apply(RBAC).await?;
        let account = cluster.service_account(NAMESPACE, "aether").await?;
        Ok(Self { kubeconfig: cluster.kubeconfig(&account)?, objects, cluster })
    }
}
