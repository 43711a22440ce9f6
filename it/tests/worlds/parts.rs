//! The objects of a world.

use it::world::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategies::{
    LONG, Setting, addresses, annotation, maybe, names, namespaces, nodes, noise, numbers, one_of,
    port_names, ports, protocols,
};

/// A Service with the slices of it. The number makes what must be unique: of two worlds the same number may be another.
#[derive(Debug, Clone)]
pub struct Shape {
    namespace: String,
    name: String,
    address: &'static str,
    settings: Vec<Option<Setting>>,
    slices: Vec<(bool, Vec<Option<Setting>>)>,
}

/// Services with their slices.
pub fn services() -> impl Strategy<Value = Shape> {
    let address = one_of(&[
        "v4", "v4", "v4", "v4", "v4", "v6", "dual", "dual v6", "shared", "headless", "none",
        "external", "wrong",
    ]);
    let settings = vec![
        maybe(1, &["metadata", "labels"], Just(Value::Null).boxed()),
        maybe(
            9,
            &["metadata", "creationTimestamp"],
            "2026-01-01T00:00:0[0-3]Z".prop_map(Value::from).boxed(),
        ),
        annotation(2, "aether.io/service", prop_oneof![5 => names(), 1 => noise()].boxed()),
        annotation(1, "aether.io/service", noise()),
        annotation(2, "aether.io/app-protocol", protocols()),
        annotation(
            1,
            "aether.io/port",
            prop_oneof![5 => ports().prop_map(|port| port.to_string()), 1 => noise()].boxed(),
        ),
        annotation(
            1,
            "aether.io/generated-for",
            one_of(&["shop/web", "shop/cart", "pay/web", "x"]).prop_map(str::to_owned).boxed(),
        ),
        annotation(1, "example.com/note", noise()),
        maybe(
            9,
            &["spec", "ports"],
            proptest::collection::vec(port(), 0..5).prop_map(Value::from).boxed(),
        ),
        maybe(5, &["spec", "selector"], Just(json!({"app": "x"})).boxed()),
        maybe(1, &["spec", "sessionAffinity"], Just("ClientIP".into()).boxed()),
        maybe(
            2,
            &["spec", "internalTrafficPolicy"],
            one_of(&["Local", "Cluster"]).prop_map(Value::from).boxed(),
        ),
        maybe(
            2,
            &["spec", "trafficDistribution"],
            one_of(&["PreferClose", "PreferSameNode", "PreferSameZone", "Nearer"])
                .prop_map(Value::from)
                .boxed(),
        ),
    ];
    (namespaces(), names(), address, settings, proptest::collection::vec(slice(), 0..3)).prop_map(
        |(namespace, name, address, settings, slices)| Shape {
            namespace,
            name,
            address,
            settings,
            slices,
        },
    )
}

fn port() -> impl Strategy<Value = Value> {
    let transport = prop_oneof![8 => Just("TCP"), 1 => Just("UDP"), 1 => Just("SCTP")];
    let word = proptest::option::of(protocols());
    (port_names(), numbers(), transport, word).prop_map(|(name, port, transport, word)| {
        let mut port = json!({"name": name, "port": port, "protocol": transport});
        if let Some(word) = word {
            port["appProtocol"] = word.into();
        }
        port
    })
}

/// A slice: whether it is of IPv6, and what is in it.
fn slice() -> impl Strategy<Value = (bool, Vec<Option<Setting>>)> {
    any::<bool>().prop_flat_map(|v6| {
        let target = (port_names(), proptest::option::weighted(0.95, numbers()))
            .prop_map(|(name, port)| json!({"name": name, "port": port, "protocol": "TCP"}));
        let settings = vec![
            maybe(
                9,
                &["ports"],
                proptest::collection::vec(target, 0..4).prop_map(Value::from).boxed(),
            ),
            maybe(
                9,
                &["endpoints"],
                proptest::collection::vec(endpoint(v6), 0..6).prop_map(Value::from).boxed(),
            ),
            maybe(1, &["addressType"], one_of(&["FQDN", "IPv4"]).prop_map(Value::from).boxed()),
        ];
        (Just(v6), settings)
    })
}

fn endpoint(v6: bool) -> impl Strategy<Value = Value> {
    let condition = || one_of(&[None, Some(true), Some(true), Some(false)]);
    let zone = proptest::option::of(one_of(&["a", "b", "zürich", LONG]));
    let parts =
        (addresses(v6), condition(), condition(), condition(), proptest::option::of(nodes()), zone);
    (parts, 0..4u8).prop_map(|((address, ready, serving, terminating, node, zone), pod)| {
        json!({
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "nodeName": node, "zone": zone,
            "targetRef": {"kind": "Pod", "name": format!("pod-{pod}")},
        })
    })
}

/// Pods that serve, or should not.
pub fn pods() -> impl Strategy<Value = Object> {
    let weight = one_of(&["1", "2", "1000", "0", "1001", "heavy"]).prop_map(str::to_owned).boxed();
    let text = |values: &[&'static str]| one_of(values).prop_map(Value::from).boxed();
    let settings = vec![
        maybe(2, &["metadata", "labels"], Just(Value::Null).boxed()),
        maybe(1, &["metadata", "deletionTimestamp"], text(&["2026-01-01T00:00:00Z"])),
        annotation(
            4,
            "endpoint.aether.io/port",
            prop_oneof![5 => ports().prop_map(|port| port.to_string()), 1 => noise()].boxed(),
        ),
        annotation(3, "endpoint.aether.io/weight", weight),
        annotation(1, "config.aether.io/upstreams", noise()),
        maybe(8, &["spec", "serviceAccountName"], text(&["web", "cart", "default", LONG])),
        maybe(1, &["spec", "hostNetwork"], Just(true.into()).boxed()),
        maybe(1, &["status", "phase"], text(&["Pending", "Failed"])),
        maybe(3, &["status", "conditions"], Just(json!([])).boxed()),
    ];
    (namespaces(), 0..4u8, nodes(), addresses(false), settings).prop_map(
        |(namespace, pod, node, address, settings)| {
            let ips: Vec<_> = address.parse().into_iter().collect();
            set(Object::pod(&namespace, &format!("pod-{pod}"), &node, &ips), settings)
        },
    )
}

/// An object with these fields.
pub fn set(object: Object, settings: Vec<Option<Setting>>) -> Object {
    settings.into_iter().flatten().fold(object, |object, (path, value)| object.with(&path, value))
}

impl Shape {
    /// Its objects, as the n-th of its world. In a world of hundreds they bear that number in their names.
    pub fn objects(self, n: usize, numbered: bool) -> Vec<Object> {
        let name = if numbered { format!("s{n}") } else { self.name };
        let (high, low) = (n / 250, n % 250 + 1);
        let (v4, v6) = (format!("10.96.{high}.{low}"), format!("fd00:10:96::{high:x}:{low:x}"));
        let (ips, only): (Vec<String>, Option<&str>) = match self.address {
            "v6" => (vec![v6], None),
            "dual" => (vec![v4, v6], None),
            "dual v6" => (vec![v6, v4], None),
            "shared" => (vec![format!("10.96.255.{}", n % 3)], None),
            "headless" => (vec!["None".to_owned()], None),
            "none" | "external" => (Vec::new(), Some(self.address)),
            "wrong" => (vec!["10.96.0.256".to_owned()], None),
            _ => (vec![v4], None),
        };
        let first = ips.first().cloned().unwrap_or_default();
        let mut service =
            Object::service(&self.namespace, &name, &first).with(&["spec", "clusterIPs"], ips);
        if only == Some("external") {
            let spec = json!({"type": "ExternalName", "externalName": "db.example.com"});
            service = service.with(&["spec"], spec);
        }
        let mut objects = vec![set(service, self.settings)];
        for (at, (v6, settings)) in self.slices.into_iter().enumerate() {
            let slice = Object::slice(&self.namespace, &name, &at.to_string(), v6);
            objects.push(set(slice, settings));
        }
        objects
    }
}
