//! The two domains, the same for every program that knows names.

use anyhow::Result;
use clap::Args;

use super::WrongOptions;
use crate::model::{DomainError, MeshNames};

/// The domain of the mesh and that of the cluster.
#[derive(Debug, Clone, Args)]
pub struct Domains {
    /// Domain of the mesh's own names, `<name>.<namespace>.<domain>`.
    #[arg(
        long,
        env = "AETHER_MESH_DOMAIN",
        value_name = "DOMAIN",
        default_value = "aether.internal"
    )]
    mesh_domain: String,

    /// Domain of the Kubernetes cluster, where `<service>.<namespace>.svc` is.
    #[arg(
        long,
        env = "AETHER_CLUSTER_DOMAIN",
        value_name = "DOMAIN",
        default_value = "cluster.local"
    )]
    cluster_domain: String,
}

impl Domains {
    /// The names in them.
    ///
    /// # Errors
    /// Where one of them cannot be used, or they do not go together; the option at fault is named.
    pub fn names(&self) -> Result<MeshNames> {
        MeshNames::new(&self.mesh_domain, &self.cluster_domain).map_err(|error| {
            let option = at_fault(&error);
            anyhow::Error::new(error).context(WrongOptions(option))
        })
    }
}

/// Which of the two domains is to be mended.
fn at_fault(error: &DomainError) -> &'static str {
    match error {
        DomainError::NotDns(_)
        | DomainError::OneLabel(_)
        | DomainError::Svc(_)
        | DomainError::Number(_) => "--mesh-domain",
        DomainError::ClusterNotDns(_) => "--cluster-domain",
        DomainError::Nested { .. } => "--mesh-domain and --cluster-domain",
    }
}
