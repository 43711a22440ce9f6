//! What a cluster consists of.

/// What a [`Cluster`](super::Cluster) is to have. etcd and the API server are always there.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) controllers: bool,
    pub(super) nodes: Vec<FakeNode>,
    pub(super) users: Vec<User>,
    pub(super) dual_stack: bool,
    pub(super) api_server: Vec<String>,
}

/// A node without a machine: kwok says that it is ready, and that the pods on it run.
#[derive(Debug, Clone)]
pub struct FakeNode {
    /// Its name.
    pub name: String,
    /// Its label `topology.kubernetes.io/zone`.
    pub zone: String,
    /// Its label `topology.kubernetes.io/region`.
    pub region: String,
}

/// Somebody with a token who is no ServiceAccount.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

impl FakeNode {
    /// A node of this zone in the region `region-1`.
    pub fn new(name: &str, zone: &str) -> Self {
        Self { name: name.to_owned(), zone: zone.to_owned(), region: "region-1".to_owned() }
    }
}

impl Options {
    /// etcd and the API server alone: objects, watches, permissions, webhooks. Nobody makes ServiceAccounts, so a pod
    /// is refused until its own is created; nobody finalises a namespace.
    pub fn bare() -> Self {
        Self::default()
    }

    /// The controllers too: ServiceAccounts, ReplicaSets and their pods, EndpointSlices, garbage collection. No pod
    /// is ever scheduled.
    pub fn controlled() -> Self {
        Self { controllers: true, ..Self::default() }
    }

    /// Controllers, scheduler, and these nodes, on which pods run (no program, but a status with addresses of
    /// 10.244.0.0/16).
    pub fn whole(nodes: impl IntoIterator<Item = FakeNode>) -> Self {
        Self { controllers: true, nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// One more user, of these groups. Without a RoleBinding they may do next to nothing.
    #[must_use]
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.users.push(User { name: name.to_owned(), groups });
        self
    }

    /// Services have IPv6 addresses too where they ask for them (fd00:10:96::/112), and pods get one.
    #[must_use]
    pub fn dual_stack(mut self) -> Self {
        self.dual_stack = true;
        self
    }

    /// One more flag of kube-apiserver: `--feature-gates=…`, `--disable-admission-plugins=…`.
    #[must_use]
    pub fn api_server(mut self, flag: &str) -> Self {
        self.api_server.push(flag.to_owned());
        self
    }
}
