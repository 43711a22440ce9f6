//! The names of the mesh: its domain, the cluster's, and every spelling made of them.

use std::sync::Arc;

use super::{MeshService, ServiceKey, is_dns_label};

/// The longest domain: two labels of 63 characters and their dots must still fit before it in the
/// 253 of a DNS name.
const LONGEST: usize = 253 - 2 * 64;

/// Why the two domains cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// A mesh domain that is no DNS name.
    #[error(
        "{0:?} is no DNS name: use labels of a-z, 0-9 and '-' with dots between them, {most} characters at most",
        most = LONGEST
    )]
    NotDns(String),
    /// A cluster domain that is no DNS name.
    #[error(
        "{0:?} is no DNS name: use labels of a-z, 0-9 and '-' with dots between them, {most} characters at most",
        most = LONGEST
    )]
    ClusterNotDns(String),
    /// A mesh domain of one label.
    #[error("the mesh domain {0:?} has one label: take two at least, as aether.internal has")]
    OneLabel(String),
    /// A mesh domain that ends in `svc`.
    #[error("the mesh domain {0:?} ends in the label svc, which spells Services: take another")]
    Svc(String),
    /// A mesh domain that ends in a number.
    #[error("the mesh domain {0:?} ends in a number, as an address does: take another")]
    Number(String),
    /// One of the domains lies inside the other.
    #[error(
        "the mesh domain {mesh:?} and the cluster domain {cluster:?} lie inside one another: take a mesh domain beside it"
    )]
    Nested {
        /// The mesh domain.
        mesh: String,
        /// The cluster domain.
        cluster: String,
    },
}

/// The mesh domain (default `aether.internal`) and the cluster domain (default `cluster.local`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshNames {
    domain: Arc<str>,
    cluster_domain: Arc<str>,
}

impl MeshNames {
    /// Takes both domains, in any case, with or without a trailing dot.
    ///
    /// # Errors
    /// Where one is no DNS name, or the mesh domain has one label, ends in `svc`, or lies inside
    /// or above the cluster domain: its names would be taken for those of Services.
    pub fn new(domain: &str, cluster_domain: &str) -> Result<Self, DomainError> {
        let mesh = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
        let cluster = cluster_domain.strip_suffix('.').unwrap_or(cluster_domain);
        let cluster = cluster.to_ascii_lowercase();
        let usable = |name: &str| name.len() <= LONGEST && name.split('.').all(is_dns_label);
        if !usable(&mesh) {
            return Err(DomainError::NotDns(domain.to_owned()));
        }
        if !usable(&cluster) {
            return Err(DomainError::ClusterNotDns(cluster_domain.to_owned()));
        }
        if !mesh.contains('.') {
            return Err(DomainError::OneLabel(mesh));
        }
        if mesh.rsplit('.').next() == Some("svc") {
            return Err(DomainError::Svc(mesh));
        }
        if mesh.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
            return Err(DomainError::Number(mesh));
        }
        let inside = |inner: &str, outer: &str| {
            inner.strip_suffix(outer).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if inside(&mesh, &cluster) || inside(&cluster, &mesh) {
            return Err(DomainError::Nested { mesh, cluster });
        }
        Ok(Self { domain: mesh.into(), cluster_domain: cluster.into() })
    }

    /// The mesh domain, in lower case, without a dot at its end.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The cluster domain, in the same form.
    pub fn cluster_domain(&self) -> &str {
        &self.cluster_domain
    }

    /// `<name>.<ns>.<domain>`.
    pub fn qualified(&self, key: &ServiceKey) -> String {
        format!("{}.{}.{}", key.name, key.namespace, self.domain)
    }

    /// `<name>.<domain>`: the name of whichever service owns it.
    pub fn short(&self, name: &str) -> String {
        format!("{name}.{}", self.domain)
    }

    /// `<service>.<ns>.svc.<cd>`: the authority that Kubernetes gives the Service itself.
    pub fn authority(&self, service: &MeshService) -> String {
        format!("{}.{}.svc.{}", service.service, service.key.namespace, self.cluster_domain)
    }
}

impl Default for MeshNames {
    fn default() -> Self {
        Self { domain: "aether.internal".into(), cluster_domain: "cluster.local".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_that_would_shadow_services_are_refused() {
        assert!(MeshNames::new("aether.internal", "cluster.local").is_ok());
        assert_eq!(MeshNames::new("Aether.Internal.", "cluster.local."), Ok(MeshNames::default()));
        let table = [
            ("mesh", "cluster.local", DomainError::OneLabel("mesh".into())),
            ("mesh.svc", "cluster.local", DomainError::Svc("mesh.svc".into())),
            ("0.1", "cluster.local", DomainError::Number("0.1".into())),
            ("", "cluster.local", DomainError::NotDns(String::new())),
            ("a..b", "cluster.local", DomainError::NotDns("a..b".into())),
            ("a_b.c", "cluster.local", DomainError::NotDns("a_b.c".into())),
            ("a.b", "c_d", DomainError::ClusterNotDns("c_d".into())),
        ];
        for (mesh, cluster, error) in table {
            assert_eq!(MeshNames::new(mesh, cluster), Err(error), "{mesh}");
        }
        for (mesh, cluster) in [
            ("cluster.local", "cluster.local"),
            ("mesh.cluster.local", "cluster.local"),
            ("corp.local", "k8s.corp.local"),
        ] {
            let nested = MeshNames::new(mesh, cluster);
            assert!(matches!(nested, Err(DomainError::Nested { .. })), "{mesh} {cluster}");
        }
        assert!(MeshNames::new("xcluster.local", "cluster.local").is_ok());
    }

    #[test]
    fn a_domain_leaves_room_for_names() {
        let longest = format!("{}.{}", "a".repeat(63), "b".repeat(61));
        assert_eq!(longest.len(), 125);
        assert!(MeshNames::new(&longest, "cluster.local").is_ok());
        assert!(MeshNames::new(&format!("{longest}b"), "cluster.local").is_err());
    }
}
