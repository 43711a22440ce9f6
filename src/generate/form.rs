//! The form of a generated Service.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::index::{APP_PROTOCOL, GENERATED_FOR, MESH_SERVICE, PORT, SERVICE};
use crate::model::{Generated, ServiceKey, Workload};

/// Where workloads serve that say nothing.
const WORKLOAD_PORT: u16 = 8080;

/// What the pods want their Service to say of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wanted {
    /// `aether.io/port`.
    pub port: Arc<str>,
    /// `aether.io/app-protocol`.
    pub protocol: Option<Arc<str>>,
}

impl From<&Workload> for Wanted {
    fn from(workload: &Workload) -> Self {
        Self {
            port: workload.port.value.unwrap_or(WORKLOAD_PORT).to_string().into(),
            protocol: workload.protocol.value.clone(),
        }
    }
}

impl Wanted {
    /// Whether a Service says so.
    pub fn said_by(&self, generated: &Generated) -> bool {
        generated.port.as_ref() == Some(&self.port) && generated.protocol == self.protocol
    }
}

/// The Service that is created.
pub fn new(key: &ServiceKey, wanted: &Wanted) -> Value {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "namespace": &*key.namespace,
            "name": &*key.name,
            "labels": { MESH_SERVICE: "true" },
            "annotations": { GENERATED_FOR: key.to_string() },
        },
        "spec": {},
    });
    put_right(&mut service, key, Some(wanted), false);
    service
}

/// Gives a generated Service its form back. All that is no part of this form stays as it is: the
/// ClusterIP, what users have added, and fields that nobody here knows. `plain` says that its spec
/// is as it should be; without pods (`wanted` is `None`) it goes on saying what it says of them.
pub fn put_right(service: &mut Value, key: &ServiceKey, wanted: Option<&Wanted>, plain: bool) {
    if let Some(annotations) = inside(service, "/metadata", "annotations") {
        annotations.insert(SERVICE.into(), (*key.name).into());
        if let Some(wanted) = wanted {
            annotations.insert(PORT.into(), (*wanted.port).into());
            match &wanted.protocol {
                Some(word) => annotations.insert(APP_PROTOCOL.into(), (**word).into()),
                None => annotations.remove(APP_PROTOCOL),
            };
        }
    }
    if plain {
        return;
    }
    let Some(spec) = inside(service, "", "spec") else { return };
    // What other types have, and this one must not have.
    for field in [
        "selector",
        "externalName",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
        "loadBalancerClass",
        "loadBalancerIP",
        "loadBalancerSourceRanges",
    ] {
        spec.remove(field);
    }
    spec.insert("type".into(), "ClusterIP".into());
    spec.insert("ipFamilyPolicy".into(), "PreferDualStack".into());
    spec.insert("ports".into(), json!([{ "name": "mesh", "port": 18081, "protocol": "TCP" }]));
}

/// The object of a name inside of another, made where it is not there.
fn inside<'a>(
    value: &'a mut Value,
    within: &str,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let inside = value.pointer_mut(within)?.as_object_mut()?.entry(name).or_insert(Value::Null);
    if inside.is_null() {
        *inside = json!({});
    }
    inside.as_object_mut()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::index::generated;

    fn wanted(port: &str, protocol: Option<&str>) -> Wanted {
        Wanted { port: port.into(), protocol: protocol.map(Arc::from) }
    }

    /// As the API server would give it back.
    fn stored(mut service: Value) -> Value {
        service["metadata"]["managedFields"] = json!([{ "manager": "aether" }]);
        service["metadata"]["uid"] = "u".into();
        service["spec"]["clusterIP"] = "10.96.0.9".into();
        service
    }

    fn read(service: &Value) -> Generated {
        generated(&serde_json::from_value(service.clone()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_created_is_what_is_wanted() {
        let key = ServiceKey::new("shop", "cart");
        for wanted in [wanted("8080", None), wanted("9000", Some("grpc"))] {
            let service = new(&key, &wanted);
            let read = read(&stored(service.clone()));
            assert!(read.plain && wanted.said_by(&read), "{service}");
            assert_eq!(read.mesh_name.as_deref(), Some("cart"));
            assert!(service["spec"].get("selector").is_none());
        }
    }

    #[test]
    fn drift_is_put_right_and_all_else_stays() {
        let key = ServiceKey::new("shop", "cart");
        let good = stored(new(&key, &wanted("8080", None)));
        let mut drifted = good.clone();
        drifted["metadata"]["annotations"]["aether.io/port"] = "1".into();
        drifted["metadata"]["annotations"]["aether.io/app-protocol"] = "h2".into();
        drifted["metadata"]["annotations"]["aether.io/service"] = "other".into();
        drifted["metadata"]["labels"]["team"] = "mesh".into();
        drifted["spec"]["type"] = "LoadBalancer".into();
        drifted["spec"]["selector"] = json!({ "app": "x" });
        drifted["spec"]["ports"] = json!([{ "port": 80, "nodePort": 30000 }]);
        drifted["spec"]["externalTrafficPolicy"] = "Local".into();
        drifted["spec"]["futureField"] = json!({ "a": [1] });
        drifted["status"] = json!({ "loadBalancer": {} });
        put_right(&mut drifted, &key, Some(&wanted("8080", None)), false);
        let mut expected = good;
        expected["metadata"]["labels"]["team"] = "mesh".into();
        expected["spec"]["futureField"] = json!({ "a": [1] });
        expected["status"] = json!({ "loadBalancer": {} });
        assert_eq!(drifted, expected);
    }

    #[test]
    fn without_pods_it_goes_on_saying_what_it_says() {
        let key = ServiceKey::new("shop", "cart");
        let good = stored(new(&key, &wanted("9000", Some("grpc"))));
        let mut drifted = good.clone();
        drifted["spec"]["ports"] = json!([]);
        drifted["metadata"]["annotations"]["aether.io/service"] = Value::Null;
        put_right(&mut drifted, &key, None, false);
        assert_eq!(drifted, good);
    }

    #[test]
    fn a_service_without_annotations_or_spec_gets_them() {
        let key = ServiceKey::new("shop", "cart");
        let mut bare = json!({ "metadata": { "annotations": null } });
        put_right(&mut bare, &key, Some(&wanted("8080", None)), false);
        assert_eq!(bare["metadata"]["annotations"]["aether.io/port"], "8080");
        assert_eq!(bare["spec"]["ports"][0]["port"], 18081);
    }
}
