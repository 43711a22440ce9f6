//! Reading a Service that was generated.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::values;
use crate::index::keys;
use crate::model::Generated;

/// The port of every generated Service.
const PORT: (&str, i32) = ("mesh", 18081);

/// Whether we created the Service, and may write it: it has the label, the annotation that names
/// itself, and our manager among those who wrote it. Whatever lacks one of them is a user's.
pub fn is_generated(meta: &ObjectMeta) -> bool {
    let (Some(namespace), Some(name)) = (&meta.namespace, &meta.name) else { return false };
    let itself = values::of(meta.annotations.as_ref(), keys::GENERATED_FOR)
        .and_then(|account| account.split_once('/'))
        .is_some_and(|account| account == (namespace, name));
    let mut writers = meta.managed_fields.iter().flatten();
    itself
        && values::of(meta.labels.as_ref(), keys::MESH_SERVICE) == Some("true")
        && writers.any(|writer| writer.manager.as_deref() == Some(keys::FIELD_MANAGER))
}

/// What the generator looks at in a Service that was generated; `None` for every other one.
pub fn generated(service: &Service) -> Option<Generated> {
    let meta = &service.metadata;
    if !is_generated(meta) {
        return None;
    }
    let annotation = |key| values::of(meta.annotations.as_ref(), key).map(Arc::from);
    let spec = service.spec.as_ref();
    Some(Generated {
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        deleting: meta.deletion_timestamp.is_some(),
        headless: spec.is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None")),
        plain: spec.is_some_and(is_plain),
        mesh_name: annotation(keys::SERVICE),
        port: annotation(keys::PORT),
        protocol: annotation(keys::APP_PROTOCOL),
    })
}

fn is_plain(spec: &ServiceSpec) -> bool {
    let [port] = spec.ports.as_deref().unwrap_or_default() else { return false };
    spec.type_.as_deref().is_none_or(|kind| kind == "ClusterIP")
        && spec.ip_family_policy.as_deref() == Some("PreferDualStack")
        && spec.selector.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
        && (port.name.as_deref(), port.port) == (Some(PORT.0), PORT.1)
        && port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")
        && port.app_protocol.is_none()
        && port.node_port.is_none_or(|port| port == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;
    use crate::index::tests::merge;

    fn ours() -> Value {
        json!({
            "metadata": {
                "namespace": "shop", "name": "cart", "uid": "u",
                "labels": { "aether.io/mesh-service": "true" },
                "annotations": { "aether.io/generated-for": "shop/cart", "aether.io/port": "8080" },
                "managedFields": [{ "manager": "kubectl" }, { "manager": "aether" }],
            },
            "spec": {
                "type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack", "clusterIP": "10.96.0.7",
                "ports": [{ "name": "mesh", "port": 18081, "protocol": "TCP", "targetPort": 18081 }],
            },
        })
    }

    fn with(over: Value) -> Option<Generated> {
        let mut service = ours();
        merge(&mut service, over);
        generated(&serde_json::from_value(service).unwrap())
    }

    #[test]
    fn ours_is_what_has_all_three_marks() {
        assert!(with(json!({})).unwrap().plain);
        for lacks in [
            json!({ "metadata": { "labels": { "aether.io/mesh-service": "false" } } }),
            json!({ "metadata": { "labels": null } }),
            json!({ "metadata": { "annotations": { "aether.io/generated-for": "shop/other" } } }),
            json!({ "metadata": { "annotations": { "aether.io/generated-for": "pay/cart" } } }),
            json!({ "metadata": { "annotations": { "aether.io/generated-for": "shop/cart/x" } } }),
            json!({ "metadata": { "annotations": null } }),
            json!({ "metadata": { "managedFields": [{ "manager": "kubectl" }] } }),
            json!({ "metadata": { "managedFields": [{ "manager": "aether-2" }] } }),
            json!({ "metadata": { "managedFields": null } }),
        ] {
            assert_eq!(with(lacks.clone()), None, "{lacks}");
        }
    }

    #[test]
    fn every_drift_is_seen() {
        for drift in [
            json!({ "spec": { "type": "NodePort" } }),
            json!({ "spec": { "type": "ExternalName" } }),
            json!({ "spec": { "ipFamilyPolicy": "SingleStack" } }),
            json!({ "spec": { "selector": { "app": "x" } } }),
            json!({ "spec": { "ports": [] } }),
            json!({ "spec": { "ports": null } }),
            json!({ "spec": { "ports": [{ "name": "web", "port": 18081 }] } }),
            json!({ "spec": { "ports": [{ "name": "mesh", "port": 80 }] } }),
            json!({ "spec": { "ports": [{ "name": "mesh", "port": 18081, "protocol": "UDP" }] } }),
            json!({ "spec": { "ports": [{ "name": "mesh", "port": 18081, "nodePort": 30001 }] } }),
            json!({ "spec": { "ports": [{ "name": "mesh", "port": 18081, "appProtocol": "h2" }] } }),
            json!({ "spec": { "ports": [{ "name": "mesh", "port": 18081 }, { "port": 1 }] } }),
            json!({ "spec": null }),
        ] {
            assert!(!with(drift.clone()).unwrap().plain, "{drift}");
        }
        assert!(with(json!({ "spec": { "clusterIP": "None" } })).unwrap().headless);
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-11-30T00:00:00Z" } });
        assert!(with(deleting).unwrap().deleting);
        // What a user adds beside is no drift.
        for more in [
            json!({ "metadata": { "labels": { "team": "x" } } }),
            json!({ "spec": { "trafficDistribution": "PreferClose", "selector": {} } }),
        ] {
            assert_eq!(with(more), with(json!({})));
        }
    }
}
