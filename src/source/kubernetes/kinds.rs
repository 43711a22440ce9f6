//! The kinds that are followed: what is asked of the API server for each.

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::index::ObjectKind;

/// A kind that is followed.
pub(super) trait Followed:
    kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static
{
    /// Which one it is.
    const KIND: ObjectKind;
    /// Whether the metadata is all that is asked for: a Node's status and images are larger than
    /// all the rest of it, and change all the time.
    const METADATA_ONLY: bool;
}

macro_rules! followed {
    ($($kind:ident: $metadata_only:literal;)*) => {
        $(impl Followed for $kind {
            const KIND: ObjectKind = ObjectKind::$kind;
            const METADATA_ONLY: bool = $metadata_only;
        })*
    };
}

followed! {
    Namespace: true;
    Node: true;
    ServiceAccount: true;
    Service: false;
    EndpointSlice: false;
    Pod: false;
}

/// Every kind that is followed.
pub(super) const KINDS: [ObjectKind; 6] = [
    ObjectKind::Namespace,
    ObjectKind::Node,
    ObjectKind::ServiceAccount,
    ObjectKind::Service,
    ObjectKind::EndpointSlice,
    ObjectKind::Pod,
];

/// What RBAC calls a kind: its API group (empty for the core one) and its resource.
pub(super) fn resource(kind: ObjectKind) -> (&'static str, &'static str) {
    match kind {
        ObjectKind::Namespace => ("", "namespaces"),
        ObjectKind::Node => ("", "nodes"),
        ObjectKind::ServiceAccount => ("", "serviceaccounts"),
        ObjectKind::Service => ("", "services"),
        ObjectKind::EndpointSlice => ("discovery.k8s.io", "endpointslices"),
        ObjectKind::Pod => ("", "pods"),
    }
}

/// The label selector of what matters of a kind, in a lasting look: Services and pods that are not
/// labelled are none of the mesh's, and in most clusters there are many.
pub(super) fn selector(kind: ObjectKind) -> Option<&'static str> {
    match kind {
        ObjectKind::Service => Some("aether.io/mesh-service=true"),
        ObjectKind::Pod => Some("aether.io/managed=true"),
        // Slices that belong to no Service are nobody's endpoints.
        ObjectKind::EndpointSlice => Some("kubernetes.io/service-name"),
        ObjectKind::Namespace | ObjectKind::Node | ObjectKind::ServiceAccount => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;

    use super::*;

    fn held<K: Followed>() {
        let (group, plural) = resource(K::KIND);
        assert_eq!((K::group(&()).as_ref(), K::plural(&()).as_ref()), (group, plural));
        assert_eq!(K::kind(&()), K::KIND.as_str());
        assert!(KINDS.contains(&K::KIND));
    }

    #[test]
    fn kinds_are_called_as_kubernetes_calls_them() {
        held::<Namespace>();
        held::<Node>();
        held::<ServiceAccount>();
        held::<Service>();
        held::<EndpointSlice>();
        held::<Pod>();
        assert!(Pod::url_path(&(), None).ends_with("/pods"));
    }

    #[test]
    fn selectors_name_the_labels_that_the_index_reads() {
        let managed = format!("{}=true", crate::index::MANAGED);
        assert_eq!(selector(ObjectKind::Pod), Some(managed.as_str()));
    }
}
