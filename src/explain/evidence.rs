//! What an explanation is made of: the proxy's view, the projection behind it, and what is known of
//! the objects behind that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Host, Question};
use crate::index::{About, Behind, Index, ServiceFacts};
use crate::model::{Finding, MeshService, ObjectRef, PodKey, Projection, ServiceKey};
use crate::translate::{Settings, naming};
use crate::xds::{Snapshot, View};

/// How the pod's proxy stands with the server that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxy {
    /// Whether it is connected.
    pub connected: bool,
    /// What it refuses at this time: the type, since when, and its own words.
    pub refused: Vec<(String, Timestamp, String)>,
}

/// What an explanation looks at. Cheap to gather: nearly all of it is shared.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// How the translation is set.
    pub settings: Settings,
    /// What the pod's proxy is served; `None` for one that waits.
    pub view: Option<View>,
    /// The node proxy that the pod is behind, by its id; `None` where it has a sidecar.
    pub node_proxy: Option<Arc<str>>,
    /// The projection that the view was made of.
    pub projection: Projection,
    /// The pod, and the Services.
    pub about: About,
    /// Of the Services that may be meant, where their endpoints come from.
    pub behind: BTreeMap<ObjectRef, BTreeMap<IpAddr, Behind>>,
    /// How the proxy stands; `None` where no server is asked.
    pub proxy: Option<Proxy>,
    /// All that is wrong, and since when that is known.
    pub findings: BTreeMap<Finding, Option<Timestamp>>,
}

impl Evidence {
    /// Gathers what has to do with a question.
    pub fn gather(
        question: &Question,
        settings: &Settings,
        index: &Index,
        projection: &Projection,
        snapshot: &Arc<Snapshot>,
        findings: BTreeMap<Finding, Option<Timestamp>>,
    ) -> Self {
        let about = index.about(&question.pod);
        let meant =
            about.services.values().filter(|facts| may_mean(&question.destination.host, facts));
        let behind = meant.map(|facts| (facts.object.clone(), index.behind(&facts.object)));
        let behind = behind.collect();
        // The form with all virtual hosts inside; on delta streams the very same ones come apart.
        let whole = naming::SOTW_LENS.into();
        let node_proxy = node_proxy(snapshot, projection, &question.pod);
        let proxy = node_proxy.clone().unwrap_or_else(|| naming::node_id(&question.pod).into());
        Self {
            settings: settings.clone(),
            view: View::new(snapshot, &proxy, &whole),
            node_proxy,
            projection: projection.clone(),
            about,
            behind,
            proxy: None,
            findings,
        }
    }

    /// A mesh service.
    pub(super) fn service(&self, key: &ServiceKey) -> Option<&Arc<MeshService>> {
        self.projection.services.get(key)
    }

    /// The mesh service of a Kubernetes Service; `None` where it is not captured.
    pub(super) fn mesh_service_of(&self, namespace: &str, name: &str) -> Option<&Arc<MeshService>> {
        let mut services = self.projection.services.values();
        services.find(|one| &*one.key.namespace == namespace && &*one.service == name)
    }

    /// What is known of the Kubernetes Service behind a mesh service.
    pub(super) fn facts_of(&self, service: &MeshService) -> Option<&Arc<ServiceFacts>> {
        self.about.services.get(&(service.key.namespace.clone(), service.service.clone()))
    }

    /// The findings on an object.
    pub(super) fn on<'a>(
        &'a self,
        object: &'a ObjectRef,
    ) -> impl Iterator<Item = (&'a Finding, Option<Timestamp>)> {
        let all = self.findings.iter().map(|(finding, since)| (finding, *since));
        all.filter(move |(finding, _)| finding.object == *object)
    }
}

/// The id of the node proxy that has the capture listener of a pod: that pod's network namespace is
/// pinned, and no sidecar can have the address a second time.
fn node_proxy(snapshot: &Snapshot, projection: &Projection, pod: &PodKey) -> Option<Arc<str>> {
    let node = projection.pods.get(pod)?.place.node.as_ref()?;
    let (id, spec) = snapshot.nodes.get_key_value(&*naming::node_proxy_id(node))?;
    let listener = naming::capture_listener(pod);
    spec.own.iter().any(|own| *own.name == listener).then(|| id.clone())
}

/// The Service behind a mesh service, as an object.
pub(super) fn object_of(service: &MeshService) -> ObjectRef {
    ObjectRef::new("Service", service.key.namespace.clone(), service.service.clone())
}

/// Whether a destination may lead to a Service: by its name, which stands first or after that of a
/// pod, or by its address.
fn may_mean(host: &Host, facts: &ServiceFacts) -> bool {
    match host {
        Host::Ip(ip) => facts.cluster_ips.contains(ip),
        Host::Name(name) => {
            let mut words = name.split('.').take(2);
            words.any(|word| word == &*facts.mesh_name || word == &*facts.object.name)
        }
    }
}
