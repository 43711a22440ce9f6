//! Permissions to write: whether we have them, asked before they are needed.
//!
//! That something may not be read shows at once. That something may not be written would show on
//! the day when it is to be written; so the API server is asked, at the start, and now and then
//! (`SelfSubjectAccessReview`, which everybody may create).

mod review;

use std::fmt;

pub use review::{Reviewer, Verdict};

/// Something that must be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Permission {
    /// The verb.
    pub verb: &'static str,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The namespace; `None`: in all of them.
    pub namespace: Option<String>,
    /// The one object that it is about; `None`: any.
    pub name: Option<String>,
}

impl Permission {
    /// A verb on a resource in all namespaces.
    pub fn anywhere(verb: &'static str, group: &'static str, resource: &'static str) -> Self {
        Self { verb, group, resource, namespace: None, name: None }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { "core" } else { self.group };
        write!(f, "{} {} (API group {group})", self.verb, self.resource)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in the namespace {namespace}")?,
            None => f.write_str(" in all namespaces")?,
        }
        match &self.name {
            Some(name) => write!(f, " by the name {name}"),
            None => Ok(()),
        }
    }
}

/// What writing needs: the Lease of this name in this namespace (`None`: no election), mesh
/// Services where they are generated, and events.
pub fn needed(lease: Option<(&str, &str)>, generate: bool) -> Vec<Permission> {
    let mut all = Vec::new();
    if let Some((namespace, name)) = lease {
        let lease = |verb, name: Option<&str>| Permission {
            verb,
            group: "coordination.k8s.io",
            resource: "leases",
            namespace: Some(namespace.to_owned()),
            name: name.map(str::to_owned),
        };
        // What there is not yet has no name that a rule could name.
        all.push(lease("create", None));
        all.extend(["get", "list", "watch", "update"].map(|verb| lease(verb, Some(name))));
    }
    if generate {
        let services = |verb| Permission::anywhere(verb, "", "services");
        all.extend(["get", "create", "update", "delete"].map(services));
        all.push(Permission::anywhere("list", "", "pods"));
        all.push(Permission::anywhere("get", "", "serviceaccounts"));
    }
    let events = |verb| Permission::anywhere(verb, "events.k8s.io", "events");
    all.extend(["create", "get", "patch"].map(events));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_named_as_a_rule_would_be_written() {
        let all = needed(Some(("aether-system", "aether")), true);
        let words: Vec<_> = all.iter().map(ToString::to_string).collect();
        for expected in [
            "create leases (API group coordination.k8s.io) in the namespace aether-system",
            "update leases (API group coordination.k8s.io) in the namespace aether-system by the name aether",
            "delete services (API group core) in all namespaces",
            "patch events (API group events.k8s.io) in all namespaces",
        ] {
            assert!(words.iter().any(|word| word == expected), "{words:?}");
        }
        assert_eq!(needed(None, false).len(), 3);
    }
}
