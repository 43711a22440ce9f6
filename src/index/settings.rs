//! What the index has to know beside the objects.

use std::collections::BTreeSet;

use crate::model::MeshNames;

/// Namespaces that are never touched, whatever the configuration says.
const ALWAYS: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// The settings of index and projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The domains, for findings that name a name.
    pub names: MeshNames,
    /// Namespaces never touched, in lower case.
    never_touched: BTreeSet<String>,
    /// Ports that are not inspected in redirect-all mode, so that HTTP is not recognised there;
    /// empty in scoped mode.
    pub server_first_ports: Vec<u16>,
}

impl Settings {
    /// Settings with the namespaces of Kubernetes itself and `never_touched`, in any case.
    pub fn new<'a>(
        names: MeshNames,
        never_touched: impl IntoIterator<Item = &'a str>,
        server_first_ports: Vec<u16>,
    ) -> Self {
        let never_touched =
            ALWAYS.into_iter().chain(never_touched).map(str::to_ascii_lowercase).collect();
        Self { names, never_touched, server_first_ports }
    }

    /// Whether a namespace is never touched.
    pub fn never_touches(&self, namespace: &str) -> bool {
        self.never_touched.contains(&namespace.to_ascii_lowercase())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(MeshNames::default(), [], Vec::new())
    }
}
