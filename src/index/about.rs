//! What the index knows of one pod and of the Services, for whoever asks why something is so.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use imbl::OrdMap;

use super::Index;
use super::facts::{OtherService, PodFacts, ServiceFacts};
use crate::model::{ObjectRef, PodKey};

/// What stands behind an answer, shared with the index and not copied.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The pod; `None` where none of its name is known.
    pub pod: Option<Arc<PodFacts>>,
    /// Whether the pod's namespace is one of those never touched.
    pub never_touched: bool,
    /// Whether the label of the pod's namespace puts new pods into the mesh.
    pub namespace_managed: bool,
    /// The labelled Services that can be used, by namespace and name.
    pub services: OrdMap<(Arc<str>, Arc<str>), Arc<ServiceFacts>>,
    /// All other Services that are known.
    pub others: OrdMap<(Arc<str>, Arc<str>), Arc<OtherService>>,
}

/// Where an endpoint comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The EndpointSlice that names it; `None` for one of the registry.
    pub slice: Option<ObjectRef>,
    /// The pod, where it is known.
    pub pod: Option<ObjectRef>,
}

impl Index {
    /// What is known of a pod, and of all Services.
    pub fn about(&self, pod: &PodKey) -> About {
        let name = (pod.namespace.clone(), pod.name.clone());
        About {
            pod: self.pods.get(&name).cloned(),
            never_touched: self.settings.never_touches(&pod.namespace),
            namespace_managed: self.namespaces.get(&pod.namespace) == Some(&true),
            services: self.services.clone(),
            others: self.others.clone(),
        }
    }

    /// Where the endpoints of a Service come from, by address.
    pub fn behind(&self, service: &ObjectRef) -> BTreeMap<IpAddr, Behind> {
        let namespace = &service.namespace;
        let name = (namespace.clone(), service.name.clone());
        let mut behind = BTreeMap::new();
        let first = Included((namespace.clone(), Arc::from("")));
        let pods = self.pods.range((first, Unbounded)).map(|(_, pod)| pod);
        for pod in pods.take_while(|pod| pod.object.namespace == *namespace) {
            for ip in &pod.ips {
                behind.insert(*ip, Behind { slice: None, pod: Some(pod.object.clone()) });
            }
        }
        for (slice, facts) in self.slices.get(&name).into_iter().flatten() {
            let object = ObjectRef::new("EndpointSlice", namespace.clone(), slice.clone());
            for endpoint in &facts.endpoints {
                let pod = endpoint.pod.as_ref();
                let pod = pod.map(|pod| ObjectRef::new("Pod", namespace.clone(), pod.clone()));
                let known = behind.remove(&endpoint.address).and_then(|known| known.pod);
                let from = Behind { slice: Some(object.clone()), pod: pod.or(known) };
                behind.insert(endpoint.address, from);
            }
        }
        behind
    }
}
