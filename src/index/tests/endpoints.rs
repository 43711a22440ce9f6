//! Which endpoints a port has, from slices and from the registry.

use serde_json::{Value, json};

use super::{annotated, found, get, merge, project, service};
use crate::model::{Endpoint, Health, Locality, Projection, Reason};

fn slice(name: &str, endpoints: Value, more: Value) -> Value {
    let mut base = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "namespace": "shop", "name": name, "labels": { "kubernetes.io/service-name": "cart" } },
        "ports": [{ "name": "web", "port": 8080 }],
        "endpoints": endpoints
    });
    merge(&mut base, more);
    base
}

fn pod(name: &str, ip: &str, more: Value) -> Value {
    let mut base = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name, "labels": { "aether.io/managed": "true" } },
        "spec": { "nodeName": "n1", "serviceAccountName": "cart", "containers": [] },
        "status": { "phase": "Running", "podIP": ip, "conditions": [{ "type": "Ready", "status": "True" }] }
    });
    merge(&mut base, more);
    base
}

fn of(projection: &Projection) -> Vec<Endpoint> {
    get(projection, "shop/cart").ports[0].endpoints.clone()
}

fn addresses(projection: &Projection) -> Vec<String> {
    of(projection).iter().map(|one| format!("{}:{}", one.address, one.port)).collect()
}

fn selectorless(more: Value) -> Value {
    let mut base = service("shop", "cart", json!({ "spec": { "selector": null } }));
    merge(&mut base, more);
    base
}

#[test]
fn conditions_say_how_fit_an_endpoint_is() {
    let table = [
        (json!({}), Health::Ready),
        (json!({ "ready": null }), Health::Ready),
        (json!({ "ready": true, "terminating": true }), Health::Ready),
        (json!({ "ready": false }), Health::Unready),
        (json!({ "ready": false, "serving": true }), Health::Unready),
        (json!({ "ready": false, "serving": true, "terminating": true }), Health::Draining),
        (json!({ "ready": false, "serving": null, "terminating": true }), Health::Unready),
        (json!({ "ready": false, "serving": false, "terminating": true }), Health::Unready),
    ];
    for (conditions, health) in table {
        let one = json!([{ "addresses": ["10.0.0.1", "10.0.0.2"], "conditions": conditions }]);
        let endpoints =
            of(&project(&[service("shop", "cart", json!({})), slice("s", one, json!({}))]));
        assert_eq!(endpoints.len(), 1, "the first address counts");
        assert_eq!(endpoints[0].health, health, "{conditions}");
    }
}

#[test]
fn ports_go_by_name() {
    let ports =
        json!({ "spec": { "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }] } });
    let named = json!({ "ports": [{ "name": "b", "port": 9000 }, { "name": "c", "port": 9001 }] });
    let one = json!([{ "addresses": ["10.0.0.1"] }]);
    let projection = project(&[service("shop", "cart", ports), slice("s", one, named)]);
    let cart = get(&projection, "shop/cart");
    assert!(cart.port(80).unwrap().endpoints.is_empty());
    assert_eq!(cart.port(81).unwrap().endpoints[0].port, 9000);
}

#[test]
fn one_address_in_several_slices_is_one_and_ready_wins() {
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let not = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": false } }]);
    for (a, b) in [(&ready, &not), (&not, &ready)] {
        let objects = [
            service("shop", "cart", json!({})),
            slice("a", a.clone(), json!({})),
            slice("b", b.clone(), json!({})),
        ];
        let endpoints = of(&project(&objects));
        assert_eq!(endpoints.len(), 1);
        assert_eq!(endpoints[0].health, Health::Ready);
    }
}

#[test]
fn what_cannot_be_used_of_a_slice_is_left_out_and_reported() {
    let good = json!([{ "addresses": ["10.0.0.1"] }]);
    let table = [
        (slice("s", good.clone(), json!({ "addressType": "FQDN" })), "addressType"),
        (slice("s", good.clone(), json!({ "ports": [{ "name": "web" }] })), "ports[0].port"),
        (
            slice("s", good.clone(), json!({ "ports": [{ "name": "web", "port": 0 }] })),
            "ports[0].port",
        ),
        (
            slice("s", json!([{ "addresses": ["127.0.0.1"] }]), json!({})),
            "endpoints[0].addresses[0]",
        ),
        (
            slice("s", json!([{ "addresses": ["169.254.1.1"] }]), json!({})),
            "endpoints[0].addresses[0]",
        ),
        (slice("s", json!([{ "addresses": ["cart"] }]), json!({})), "endpoints[0].addresses[0]"),
    ];
    for (slice, field) in table {
        let projection = project(&[service("shop", "cart", json!({})), slice.clone()]);
        assert!(of(&projection).is_empty(), "{field}");
        assert_eq!(projection.findings.len(), 1, "{field}");
        assert_eq!(projection.findings.iter().next().unwrap().field, field);
        // A slice of a Service that is not in the mesh is nobody's concern.
        assert!(project(&[slice]).findings.is_empty());
    }
}

#[test]
fn the_primary_family_alone_counts() {
    let v4 = slice("a", json!([{ "addresses": ["10.0.0.1"] }]), json!({}));
    let v6 = slice("b", json!([{ "addresses": ["fd00::1"] }]), json!({ "addressType": "IPv6" }));
    let families = |f: Value| service("shop", "cart", json!({ "spec": { "ipFamilies": f } }));
    let objects = |f| [families(f), v4.clone(), v6.clone()];
    assert_eq!(addresses(&project(&objects(json!(["IPv4", "IPv6"])))), ["10.0.0.1:8080"]);
    assert_eq!(addresses(&project(&objects(json!(["IPv6", "IPv4"])))), ["fd00::1:8080"]);
    let none = json!({ "spec": { "clusterIP": "None", "clusterIPs": ["None"] } });
    let only6 = project(&[service("shop", "cart", none), v6.clone()]);
    assert_eq!(addresses(&only6), ["fd00::1:8080"]);
}

#[test]
fn locality_is_the_nodes_else_the_slices_and_never_costs_the_endpoint() {
    let node = |name: &str, labels: Value| json!({ "kind": "Node", "metadata": { "name": name, "labels": labels } });
    let whole = node(
        "n1",
        json!({ "topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "a" }),
    );
    let endpoint = |node: Value, zone: Value| json!([{ "addresses": ["10.0.0.1"], "nodeName": node, "zone": zone }]);
    let table = [
        (endpoint(json!("n1"), json!("z")), Some(Locality::new("eu", "a"))),
        (endpoint(json!("gone"), json!("z")), Some(Locality::new("", "z"))),
        (endpoint(json!("gone"), json!("a")), Some(Locality::new("eu", "a"))),
        (endpoint(json!("gone"), json!(null)), None),
        (endpoint(json!("n2"), json!("z")), Some(Locality::new("", "z"))),
        (endpoint(json!(null), json!(null)), None),
    ];
    for (endpoints, expected) in table {
        let objects = [
            whole.clone(),
            node("n2", json!({})),
            service("shop", "cart", json!({})),
            slice("s", endpoints.clone(), json!({})),
        ];
        assert_eq!(of(&project(&objects))[0].locality, expected, "{endpoints}");
    }
}

#[test]
fn the_registry_serves_generated_and_sliceless_selectorless_services() {
    let generated = {
        let mut base = service("shop", "cart", annotated("aether.io/generated-for", "shop/cart"));
        merge(&mut base, json!({ "spec": { "selector": null } }));
        base
    };
    let with_slice = slice("s", json!([{ "addresses": ["10.0.0.9"] }]), json!({}));
    let one = pod("p", "10.0.0.1", json!({}));
    assert_eq!(
        addresses(&project(&[generated, with_slice.clone(), one.clone()])),
        ["10.0.0.1:8080"]
    );
    assert_eq!(addresses(&project(&[selectorless(json!({})), one.clone()])), ["10.0.0.1:8080"]);
    assert_eq!(
        addresses(&project(&[selectorless(json!({})), with_slice, one.clone()])),
        ["10.0.0.9:8080"]
    );
    assert!(of(&project(&[service("shop", "cart", json!({})), one])).is_empty());
}

#[test]
fn registry_pods_are_running_managed_and_in_a_network_of_their_own() {
    let table = [
        (json!({ "metadata": { "labels": { "aether.io/managed": "false" } } }), false),
        (json!({ "metadata": { "labels": { "aether.io/managed": null } } }), false),
        (json!({ "metadata": { "namespace": "pay" } }), false),
        (json!({ "spec": { "hostNetwork": true } }), false),
        (json!({ "spec": { "serviceAccountName": "web" } }), false),
        (json!({ "status": { "phase": "Pending" } }), false),
        (json!({ "status": { "podIP": null } }), false),
        (json!({}), true),
    ];
    for (more, serves) in table {
        let mut more = more;
        if more.pointer("/metadata/labels/aether.io~1managed") == Some(&Value::Null) {
            more["metadata"]["labels"] = Value::Null;
        }
        let projection = project(&[selectorless(json!({})), pod("p", "10.0.0.1", more.clone())]);
        assert_eq!(!of(&projection).is_empty(), serves, "{more}");
    }
}

#[test]
fn registry_ports_and_health() {
    let port = |value: &str| annotated("endpoint.aether.io/port", value);
    let workload = selectorless(annotated("aether.io/port", "9000"));
    let own = project(&[workload.clone(), pod("p", "10.0.0.1", port("7000"))]);
    assert_eq!(addresses(&own), ["10.0.0.1:7000"]);
    let wrong = project(&[workload.clone(), pod("p", "10.0.0.1", port("x"))]);
    assert_eq!(addresses(&wrong), ["10.0.0.1:9000"]);
    assert_eq!(found(&wrong, Reason::InvalidValue).len(), 1);
    let table = [
        (json!({}), Health::Ready),
        (json!({ "status": { "conditions": null } }), Health::Unready),
        (
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }),
            Health::Unready,
        ),
        (json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), Health::Draining),
    ];
    for (more, health) in table {
        let projection = project(&[workload.clone(), pod("p", "10.0.0.1", more.clone())]);
        assert_eq!(of(&projection)[0].health, health, "{more}");
    }
}

#[test]
fn the_default_account_serves_nothing_unless_its_pods_say_where() {
    let service = || {
        let mut base = service("shop", "default", json!({ "spec": { "selector": null } }));
        merge(&mut base, json!({}));
        base
    };
    let account = json!({ "spec": { "serviceAccountName": "default" } });
    let silent = pod("p", "10.0.0.1", account.clone());
    let mut telling = pod("p", "10.0.0.1", account);
    merge(&mut telling, annotated("endpoint.aether.io/port", "7000"));
    let endpoints = |p: &Projection| get(p, "shop/default").ports[0].endpoints.len();
    assert_eq!(endpoints(&project(&[service(), silent])), 0);
    assert_eq!(endpoints(&project(&[service(), telling])), 1);
}

#[test]
fn weights_come_from_the_pod_behind_the_endpoint() {
    let endpoint = json!([{ "addresses": ["10.0.0.1"], "targetRef": { "kind": "Pod", "name": "p", "namespace": "shop" } }]);
    for (value, weight) in [("1", 1), ("1000", 1000), ("0", 1), ("1001", 1), ("heavy", 1)] {
        let pod = pod("p", "10.0.0.1", annotated("endpoint.aether.io/weight", value));
        let objects =
            [service("shop", "cart", json!({})), slice("s", endpoint.clone(), json!({})), pod];
        let projection = project(&objects);
        assert_eq!(of(&projection)[0].weight, weight, "{value}");
        let wrong = usize::from(!matches!(value, "1" | "1000"));
        assert_eq!(found(&projection, Reason::InvalidValue).len(), wrong, "{value}");
    }
}
