//! What becomes of a Service, by its shape and its annotations.

use serde_json::{Value, json};

use super::{annotated, found, get, project, service};
use crate::model::{HttpVersion, Protocol, Reason, Severity, TrafficScope};

#[test]
fn wrong_annotations_quarantine_the_service_alone() {
    let table = [
        ("aether.io/service", ""),
        ("aether.io/service", "Cart"),
        ("aether.io/service", "a.b"),
        ("aether.io/service", "ünïcode"),
        ("aether.io/port", "0"),
        ("aether.io/port", "http"),
        ("aether.io/port", "65536"),
        ("aether.io/generated-for", "cart"),
        ("aether.io/generated-for", "pay/cart"),
        ("aether.io/generated-for", "shop/"),
    ];
    for (key, value) in table {
        let other = service("shop", "other", json!({ "spec": { "clusterIPs": ["10.96.0.8"] } }));
        let projection = project(&[service("shop", "cart", annotated(key, value)), other]);
        assert_eq!(projection.services.len(), 1, "{key}={value}");
        let found = found(&projection, Reason::InvalidValue);
        assert_eq!(found.len(), 1, "{key}={value}");
        assert!(found[0].field.contains(key), "{:?}", found[0]);
        assert_eq!(found[0].severity, Severity::Problem);
    }
    for name in ["c", &"c".repeat(63)] {
        let projection = project(&[service("shop", "cart", annotated("aether.io/service", name))]);
        assert_eq!(get(&projection, &format!("shop/{name}")).service.as_ref(), "cart");
    }
}

#[test]
fn shapes_that_are_not_captured_claim_no_name() {
    let shapes: [(&str, Value); 4] = [
        (
            "external",
            json!({ "spec": { "type": "ExternalName", "externalName": "db.example.com" } }),
        ),
        ("udp", json!({ "spec": { "ports": [{ "port": 53, "protocol": "UDP" }] } })),
        ("bare", json!({ "spec": { "ports": null } })),
        ("plain", json!({ "metadata": { "labels": { "aether.io/mesh-service": "yes" } } })),
    ];
    for (what, more) in shapes {
        let projection = project(&[service("shop", "cart", more)]);
        assert!(projection.services.is_empty(), "{what}");
        let expected = usize::from(what != "plain");
        assert_eq!(found(&projection, Reason::NotCaptured).len(), expected, "{what}");
        assert!(projection.findings.iter().all(|f| f.severity == Severity::Warning), "{what}");
    }
}

#[test]
fn udp_ports_beside_tcp_are_left_alone() {
    let ports = json!([{ "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "dns-tcp", "port": 53, "appProtocol": "dns" }]);
    let projection = project(&[service("edge", "udp", json!({ "spec": { "ports": ports } }))]);
    let udp = get(&projection, "edge/udp");
    assert_eq!(udp.ports.len(), 1);
    assert_eq!(udp.ports[0].protocol, Protocol::Tcp);
    assert!(found(&projection, Reason::NotCaptured)[0].message.contains("53 (UDP)"));
}

#[test]
fn the_default_port_is_18081_or_the_first() {
    let ports = |numbers: &[i32]| {
        let ports: Vec<_> =
            numbers.iter().map(|n| json!({ "name": format!("p{n}"), "port": n })).collect();
        json!({ "spec": { "ports": ports } })
    };
    for (numbers, expected) in
        [(&[9090, 80][..], 9090), (&[80, 18081][..], 18081), (&[65535][..], 65535), (&[1][..], 1)]
    {
        let projection = project(&[service("shop", "cart", ports(numbers))]);
        let cart = get(&projection, "shop/cart");
        assert_eq!(cart.default_port, expected, "{numbers:?}");
        assert!(cart.ports.is_sorted_by_key(|port| port.number));
    }
    for wrong in [0, 65536, -1] {
        let projection = project(&[service("shop", "cart", ports(&[wrong]))]);
        assert!(projection.services.is_empty(), "{wrong}");
        assert_eq!(found(&projection, Reason::InvalidValue)[0].field, "spec.ports[0].port");
    }
}

#[test]
fn addresses_that_no_service_can_have_quarantine_it() {
    for ip in ["127.0.0.1", "::1", "224.0.0.1", "0.0.0.0", "::ffff:10.96.3.6", "169.254.0.1", "x"] {
        let more = json!({ "spec": { "clusterIP": ip, "clusterIPs": [ip] } });
        let projection = project(&[service("shop", "cart", more)]);
        assert!(projection.services.is_empty(), "{ip}");
        assert_eq!(found(&projection, Reason::InvalidValue)[0].field, "spec.clusterIPs");
    }
}

#[test]
fn the_annotation_wins_over_the_ports_own_protocol() {
    let mut more = annotated("aether.io/app-protocol", "GRPC");
    more["spec"] = json!({ "ports": [{ "port": 80, "appProtocol": "tcp" }] });
    let projection = project(&[service("shop", "cart", more)]);
    assert_eq!(get(&projection, "shop/cart").ports[0].protocol, Protocol::Http(HttpVersion::Http2));
    let mut more = annotated("aether.io/app-protocol", "");
    more["spec"] = json!({ "ports": [{ "port": 80, "appProtocol": "tcp" }] });
    let projection = project(&[service("shop", "cart", more)]);
    let protocol = get(&projection, "shop/cart").ports[0].protocol;
    assert_eq!(protocol, Protocol::Http(HttpVersion::AsClient));
}

#[test]
fn namespaces_never_touched_are_not_captured_in_any_case() {
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "spire-system"] {
        let projection = project(&[service(namespace, "cart", json!({}))]);
        assert_eq!(found(&projection, Reason::NotCaptured).len(), 1, "{namespace}");
        assert!(projection.services.is_empty(), "{namespace}");
    }
    let settings = super::Settings::new(super::MeshNames::default(), ["Spire-System"], Vec::new());
    assert!(settings.never_touches("spire-system"));
    assert!(settings.never_touches("KUBE-SYSTEM"));
    assert!(!settings.never_touches("shop"));
}

#[test]
fn headless_and_unallocated_services_have_no_records() {
    let none = json!({ "spec": { "clusterIP": "None", "clusterIPs": ["None"] } });
    let unallocated = json!({ "spec": { "clusterIP": null, "clusterIPs": null } });
    for (more, headless) in [(none, true), (unallocated, false)] {
        let projection = project(&[service("shop", "cart", more)]);
        let cart = get(&projection, "shop/cart");
        assert_eq!(cart.headless, headless);
        assert!(!cart.has_mesh_name() && !cart.owns_short_name);
        assert_eq!(projection.records(), crate::model::Records::default());
        assert_eq!(found(&projection, Reason::NotCaptured).len(), 1);
    }
}

#[test]
fn what_is_not_honoured_is_said() {
    let more = json!({ "spec": { "sessionAffinity": "ClientIP", "trafficDistribution": "Far", "internalTrafficPolicy": "Local" } });
    let projection = project(&[service("shop", "cart", more)]);
    assert_eq!(found(&projection, Reason::NotSupported).len(), 2);
    assert_eq!(get(&projection, "shop/cart").scope, TrafficScope::Node);
    let more = json!({ "spec": { "trafficDistribution": "PreferSameNode" } });
    assert_eq!(
        get(&project(&[service("shop", "cart", more)]), "shop/cart").scope,
        TrafficScope::PreferNode
    );
}

#[test]
fn ports_that_may_surprise_are_warned_of() {
    let ports = json!([{ "name": "https", "port": 8443 }, { "name": "a", "port": 443 }, { "name": "b", "port": 25 }, { "name": "c", "port": 18001 }, { "name": "d", "port": 26 }]);
    let projection = project(&[service("shop", "cart", json!({ "spec": { "ports": ports } }))]);
    assert_eq!(found(&projection, Reason::Suspicious).len(), 4);
}
