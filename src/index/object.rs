//! The objects that the index takes, whichever source they come from.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::model::ObjectRef;

/// The kinds that matter to the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node.
    Node,
    /// `v1` ServiceAccount.
    ServiceAccount,
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
    /// `v1` Pod.
    Pod,
}

impl ObjectKind {
    /// The kind as a manifest names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::ServiceAccount => "ServiceAccount",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Pod => "Pod",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub fn namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Node)
    }
}

/// Which object: its kind, namespace (empty for those of the cluster) and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The kind.
    pub kind: ObjectKind,
    /// The namespace, or empty.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Id {
    /// The object as findings name it.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef::new(self.kind.as_str(), self.namespace.clone(), self.name.clone())
    }
}

/// An object as Kubernetes types it. A source gives it with its name and, where its kind has one,
/// its namespace set.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    /// A Namespace.
    Namespace(Box<Namespace>),
    /// A Node.
    Node(Box<Node>),
    /// A ServiceAccount.
    ServiceAccount(Box<ServiceAccount>),
    /// A Service.
    Service(Box<Service>),
    /// An EndpointSlice.
    EndpointSlice(Box<EndpointSlice>),
    /// A Pod.
    Pod(Box<Pod>),
}

/// One change of the objects.
#[derive(Debug, Clone)]
pub enum Change {
    /// The object is new, or has taken this form.
    Put {
        /// Which one.
        id: Id,
        /// Its form.
        object: Object,
        /// Where it came from, for findings: a file and a document. `None` for an API server.
        origin: Option<Arc<str>>,
    },
    /// The object is gone.
    Remove(Id),
}
