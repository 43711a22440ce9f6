//! Reading a Service that is not captured.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};

use super::values;
use crate::index::facts::OtherService;
use crate::index::keys;
use crate::model::ObjectRef;

/// What is kept of a Service that is not captured.
pub fn other_service(service: &Service, object: ObjectRef) -> OtherService {
    let empty = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&empty);
    let external = spec.type_.as_deref() == Some("ExternalName");
    let many = spec.cluster_ips.iter().flatten();
    let mut cluster_ips = Vec::new();
    for ip in many.chain(&spec.cluster_ip).filter_map(|ip| ip.parse().ok()) {
        if !external && !cluster_ips.contains(&ip) {
            cluster_ips.push(ip);
        }
    }
    let labels = service.metadata.labels.as_ref();
    OtherService {
        object,
        labelled: values::of(labels, keys::MESH_SERVICE) == Some("true"),
        external_name: spec.external_name.as_deref().filter(|_| external).map(Arc::from),
        headless: !external && spec.cluster_ip.as_deref() == Some("None"),
        cluster_ips,
    }
}
