//! Who connects: the two forms of an Envoy's `node.id`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{PodKey, is_dns_label, quoted};

/// Why a text is no node id. Every message names both forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeIdError {
    /// Neither form.
    #[error(
        "the node id {} has neither of the two forms: write pod/<namespace>/<name> for the proxy of \
         a pod, or node/<node name> for that of a node",
        quoted(.0)
    )]
    Form(String),
    /// A part that Kubernetes would not take as a name.
    #[error(
        "{} in the node id {} is no name in Kubernetes: write pod/<namespace>/<name> or \
         node/<node name> with names of a-z, 0-9 and '-' (and '.' but in a namespace), a letter or \
         digit first and last",
        quoted(part),
        quoted(id)
    )]
    Name {
        /// The whole id.
        id: String,
        /// The part at fault.
        part: String,
    },
}

/// The `node.id` of an Envoy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeId {
    /// `pod/<namespace>/<name>`: a sidecar.
    Pod(PodKey),
    /// `node/<node name>`: the proxy of a node.
    Node(Arc<str>),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "pod/{key}"),
            Self::Node(name) => write!(f, "node/{name}"),
        }
    }
}

impl FromStr for NodeId {
    type Err = NodeIdError;

    fn from_str(text: &str) -> Result<Self, NodeIdError> {
        let check = |part: &str, good: fn(&str) -> bool| {
            let error = || NodeIdError::Name { id: text.to_owned(), part: part.to_owned() };
            good(part).then_some(()).ok_or_else(error)
        };
        match text.split('/').collect::<Vec<_>>().as_slice() {
            ["pod", namespace, name] => {
                check(namespace, is_dns_label)?;
                check(name, is_dns_subdomain)?;
                Ok(Self::Pod(PodKey::new(*namespace, *name)))
            }
            ["node", name] => {
                check(name, is_dns_subdomain)?;
                Ok(Self::Node((*name).into()))
            }
            _ => Err(NodeIdError::Form(text.to_owned())),
        }
    }
}

/// Whether `text` is a DNS subdomain by RFC 1123: 253 characters at most, every part between dots
/// as a label but for its length. Kubernetes names of pods and nodes are such.
fn is_dns_subdomain(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        part.bytes().all(|byte| edge(byte) || byte == b'-')
            && part.bytes().next().is_some_and(edge)
            && part.bytes().last().is_some_and(edge)
    };
    text.len() <= 253 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_read_back() {
        let long = format!("pod/shop/{}", "a".repeat(253));
        for id in ["pod/shop/web-0", "pod/shop/web.0", "node/worker-1", "node/ip-10.eu", &long] {
            assert_eq!(id.parse::<NodeId>().map(|id| id.to_string()), Ok(id.to_owned()));
        }
    }

    #[test]
    fn everything_else_is_refused_and_told_both_forms() {
        let long = format!("pod/shop/{}", "a".repeat(254));
        for id in [
            "",
            "pod",
            "pod/",
            "pod/shop",
            "pod/shop/",
            "pod//web",
            "pod/shop/web/0",
            "node/",
            "node/a/b",
            "sidecar/shop/web",
            "shop/web",
            "Pod/shop/web",
            "pod/Shop/web",
            "pod/sh.op/web",
            "pod/shop/web_0",
            "pod/shop/-web",
            "pod/shop/web.",
            "node/worker 1",
            &long,
        ] {
            let told = id.parse::<NodeId>().map_err(|error| error.to_string());
            let both = |text: &String| {
                text.contains("pod/<namespace>/<name>") && text.contains("node/<node name>")
            };
            assert!(told.as_ref().is_err_and(both), "{id:?}: {told:?}");
        }
    }
}
