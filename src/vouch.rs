//! Whether a proxy is who it says: its SPIFFE ID against what its node id names.
//!
//! The proxy of a pod has the identity of the pod itself, `spiffe://<trust domain>/ns/<namespace>/sa/
//! <ServiceAccount>`. A node proxy speaks for all pods of its node, so it has an identity of its own,
//! and which ones those are is configured.

use std::fmt;
use std::str::FromStr;

use spiffe::SpiffeId;

use crate::model::NodeId;

/// What stands for the node's name in the identity of a node proxy.
const NODE: &str = "{node}";

/// The identity that node proxies may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProxyId(String);

impl FromStr for NodeProxyId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The marker alone is no part of a SPIFFE ID.
        let id = SpiffeId::new(text.replace(NODE, "node")).map_err(|error| {
            format!(
                "no SPIFFE ID: {error}; write spiffe://<trust domain>/<path>, in which {NODE} \
                 stands for the node's name"
            )
        })?;
        if id.path().is_empty() {
            return Err("it names a whole trust domain: give it a path".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl NodeProxyId {
    /// Whether this is the identity of the proxy of this node. Names of nodes are names of DNS, so
    /// none can add to the path.
    fn fits(&self, node: &str, proven: &SpiffeId) -> bool {
        SpiffeId::new(self.0.replace(NODE, node)).is_ok_and(|id| id == *proven)
    }
}

impl fmt::Display for NodeProxyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of a node, as far as its identity goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<'a> {
    /// Nothing yet.
    No,
    /// It is there, and this is the ServiceAccount of its pod, if it is one.
    Yes(Option<&'a str>),
}

/// Why a proxy is not who it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Differs {
    /// No SPIFFE ID at all.
    #[error("{proven:?} is no SPIFFE ID: {cause}")]
    NoId {
        /// What there is.
        proven: String,
        /// Why.
        cause: String,
    },
    /// The trust domain.
    #[error(
        "the trust domain differs: the certificate is that of {proven}, and the mesh's trust domain \
         is {expected} (--xds-trust-domain says which)"
    )]
    TrustDomain {
        /// The identity.
        proven: String,
        /// The one that counts.
        expected: String,
    },
    /// The form.
    #[error(
        "the certificate is that of {proven}, which is no identity of a pod: \
         spiffe://<trust domain>/ns/<namespace>/sa/<service account>"
    )]
    Form {
        /// The identity.
        proven: String,
    },
    /// The namespace.
    #[error(
        "the namespace differs: the certificate is that of {proven}, and the node id names a pod of \
         the namespace {namespace:?}"
    )]
    Namespace {
        /// The identity.
        proven: String,
        /// The pod's namespace.
        namespace: String,
    },
    /// The ServiceAccount.
    #[error(
        "the ServiceAccount differs: the certificate is that of {proven}, and {node} runs as the \
         ServiceAccount {account:?}"
    )]
    Account {
        /// The identity.
        proven: String,
        /// The node id.
        node: String,
        /// The pod's.
        account: String,
    },
    /// A node proxy, and nobody said who they are.
    #[error(
        "{node} is a node proxy, and which identities these have is not configured \
         (--xds-node-proxy-id)"
    )]
    NoNodeProxies {
        /// The node id.
        node: String,
    },
    /// A node proxy of another identity.
    #[error(
        "the identity differs: the certificate is that of {proven}, and {node} may be {allowed} \
         (--xds-node-proxy-id)"
    )]
    NodeProxy {
        /// The identity.
        proven: String,
        /// The node id.
        node: String,
        /// What it may be.
        allowed: String,
    },
    /// No node id.
    #[error("{0}")]
    NodeId(String),
}

/// By what proxies are judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The trust domain; `None`: any.
    pub trust_domain: Option<String>,
    /// Who node proxies may be.
    pub node_proxies: Vec<NodeProxyId>,
}

impl Rules {
    /// Whether the proxy that proved to be `proven` may speak for `node`. Of a node that is not known
    /// yet, what can be said already.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self, node: &str, proven: &str, known: Known<'_>) -> Result<(), Differs> {
        let id = SpiffeId::new(proven).map_err(|error| Differs::NoId {
            proven: proven.to_owned(),
            cause: error.to_string(),
        })?;
        let proven = || id.to_string();
        match node.parse().map_err(|error| Differs::NodeId(format!("{error}")))? {
            NodeId::Node(name) => {
                // Each of these names its trust domain.
                if self.node_proxies.iter().any(|allowed| allowed.fits(&name, &id)) {
                    return Ok(());
                }
                let node = node.to_owned();
                if self.node_proxies.is_empty() {
                    return Err(Differs::NoNodeProxies { node });
                }
                let allowed: Vec<_> = self.node_proxies.iter().map(ToString::to_string).collect();
                Err(Differs::NodeProxy { proven: proven(), node, allowed: allowed.join(" or ") })
            }
            NodeId::Pod(pod) => {
                let expected = self.trust_domain.as_deref();
                if let Some(expected) = expected.filter(|td| id.trust_domain_name() != *td) {
                    let expected = expected.to_owned();
                    return Err(Differs::TrustDomain { proven: proven(), expected });
                }
                let path: Vec<_> = id.path().split('/').collect();
                let ["", "ns", namespace, "sa", account] = path.as_slice() else {
                    return Err(Differs::Form { proven: proven() });
                };
                if *namespace != &*pod.namespace {
                    let namespace = pod.namespace.to_string();
                    return Err(Differs::Namespace { proven: proven(), namespace });
                }
                match known {
                    Known::Yes(Some(expected)) if *account != expected => Err(Differs::Account {
                        proven: proven(),
                        node: node.to_owned(),
                        account: expected.to_owned(),
                    }),
                    Known::Yes(_) | Known::No => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn said(rules: &Rules, node: &str, proven: &str, known: Known<'_>) -> String {
        rules.check(node, proven, known).map_or_else(|error| error.to_string(), |()| "ok".into())
    }

    #[test]
    fn the_proxy_of_a_pod_is_the_pods_own_service_account() {
        let of = |td: Option<&str>| Rules {
            trust_domain: td.map(str::to_owned),
            node_proxies: vec!["spiffe://td/ns/ops/sa/proxy".parse().unwrap()],
        };
        let (cart, pod) = ("spiffe://td/ns/shop/sa/cart", "pod/shop/cart-0");
        let known = Known::Yes(Some("cart"));
        for (td, node, proven, known, expected) in [
            (Some("td"), pod, cart, known, "ok"),
            (Some("td"), pod, cart, Known::No, "ok"),
            (None, pod, "spiffe://elsewhere/ns/shop/sa/cart", known, "ok"),
            (Some("td"), pod, "spiffe://elsewhere/ns/shop/sa/cart", known, "trust domain differs"),
            (Some("td"), pod, "spiffe://td/ns/shop/sa/till", known, "ServiceAccount differs"),
            // Of one who is not known yet, that is seen when it is.
            (Some("td"), pod, "spiffe://td/ns/shop/sa/till", Known::No, "ok"),
            (Some("td"), pod, "spiffe://td/ns/pay/sa/cart", Known::No, "namespace differs"),
            (Some("td"), pod, "spiffe://td/ns/shop/sa/cart/x", known, "no identity of a pod"),
            (Some("td"), pod, "spiffe://td/workload", known, "no identity of a pod"),
            (Some("td"), pod, "spiffe://td", known, "no identity of a pod"),
            (Some("td"), pod, "https://td/ns/shop/sa/cart", known, "no SPIFFE ID"),
            // A node proxy is no pod's.
            (Some("td"), pod, "spiffe://td/ns/ops/sa/proxy", known, "namespace differs"),
            (Some("td"), "cart", cart, known, "neither of the two forms"),
        ] {
            let said = said(&of(td), node, proven, known);
            assert!(said.contains(expected), "{node} {proven} {known:?}: {said}");
        }
        let said = said(&of(Some("td")), pod, "spiffe://td/ns/shop/sa/till", known);
        assert!(
            said.contains("spiffe://td/ns/shop/sa/till") && said.contains("\"cart\""),
            "{said}"
        );
    }

    #[test]
    fn node_proxies_are_who_was_configured() {
        let rules = |ids: &[&str]| Rules {
            trust_domain: Some("td".to_owned()),
            node_proxies: ids.iter().map(|id| id.parse().unwrap()).collect(),
        };
        let (all, each) = ("spiffe://td/ns/ops/sa/proxy", "spiffe://td/node/{node}");
        for (ids, proven, expected) in [
            (&[][..], all, "not configured"),
            (&[all][..], all, "ok"),
            (&[all][..], "spiffe://td/ns/ops/sa/proxy2", "identity differs"),
            (&[all][..], "spiffe://elsewhere/ns/ops/sa/proxy", "identity differs"),
            (&[each][..], "spiffe://td/node/worker-1", "ok"),
            (&[each][..], "spiffe://td/node/worker-2", "identity differs"),
            (&[each, all][..], all, "ok"),
        ] {
            let said = said(&rules(ids), "node/worker-1", proven, Known::No);
            assert!(said.contains(expected), "{ids:?} {proven}: {said}");
        }
        for wrong in ["", "proxy", "spiffe://td", "spiffe://td/a b", "https://td/a"] {
            assert!(wrong.parse::<NodeProxyId>().is_err(), "{wrong}");
        }
    }
}
