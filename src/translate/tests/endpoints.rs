//! Load assignments, as each place sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;

use super::world::{HTTP, decoded, endpoint, place, pod, projection, service, settings, view};
use crate::model::{Endpoint, Health, Locality, Place, TrafficScope};
use crate::translate::{CaptureMode, Translator};
use crate::xds::{Kind, Snapshot};

use Health::{Draining, Ready, Unready};

/// An endpoint on a node, which tells its zone: `eu1-a` lies in `eu1` of `eu`.
fn on(address: &str, health: Health, node: &str) -> Endpoint {
    let zone = node.split('-').next().unwrap();
    let region = zone.trim_end_matches(char::is_numeric);
    Endpoint {
        locality: (!zone.is_empty()).then(|| Locality::new(region, zone)),
        node: (!node.is_empty()).then(|| node.into()),
        ..endpoint(address, health)
    }
}

fn pods() -> Vec<(&'static str, Place)> {
    vec![
        ("shop/eu1-a", place("eu1-a", "eu", "eu1")),
        ("shop/eu1-b", place("eu1-b", "eu", "eu1")),
        ("shop/eu2-a", place("eu2-a", "eu", "eu2")),
        ("shop/us1-a", place("us1-a", "us", "us1")),
        ("shop/dark-a", Place { node: Some("dark-a".into()), locality: None }),
        ("shop/lost", Place::default()),
    ]
}

fn snapshot(scope: TrafficScope, endpoints: Vec<Endpoint>) -> Arc<Snapshot> {
    let mut cart = service("shop/cart", &[], &[(80, HTTP)]);
    cart.scope = scope;
    cart.ports[0].endpoints = endpoints;
    let pods = pods().into_iter().map(|(key, place)| pod(key, place));
    let projection = projection([cart], pods);
    Translator::new(settings(CaptureMode::RedirectAll)).translate(&projection).snapshot
}

/// The addresses by priority that a pod sees, each priority as one word.
fn sees(snapshot: &Arc<Snapshot>, pod: &str) -> String {
    let view = view(snapshot, &format!("pod/shop/{pod}"), "delta");
    let all: BTreeMap<String, ClusterLoadAssignment> = decoded(&view, Kind::Endpoints);
    let assignment = &all["shop/cart:80"];
    assert_eq!(assignment.cluster_name, "shop/cart:80");
    let mut by_priority: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for group in &assignment.endpoints {
        for host in &group.lb_endpoints {
            assert_eq!(host.health_status, 1);
            let Some(HostIdentifier::Endpoint(endpoint)) = &host.host_identifier else { panic!() };
            let Some(Address::SocketAddress(socket)) = &endpoint.address.as_ref().unwrap().address
            else {
                panic!()
            };
            by_priority
                .entry(group.priority)
                .or_default()
                .push(socket.address.rsplit('.').next().unwrap().to_owned());
        }
    }
    let priorities: Vec<u32> = by_priority.keys().copied().collect();
    let expected: Vec<u32> = (0..).take(priorities.len()).collect();
    assert_eq!(priorities, expected);
    by_priority.into_values().map(|of| of.join(",")).collect::<Vec<_>>().join(" ")
}

fn everywhere() -> Vec<Endpoint> {
    vec![
        on("10.0.0.1", Ready, "eu1-a"),
        on("10.0.0.2", Ready, "eu1-b"),
        on("10.0.0.3", Ready, "eu2-a"),
        on("10.0.0.4", Ready, "us1-a"),
        on("10.0.0.5", Ready, ""),
    ]
}

#[test]
fn the_nearest_come_first() {
    let snapshot = snapshot(TrafficScope::Cluster, everywhere());
    let table = [
        ("eu1-a", "1,2 3 5,4"),
        ("eu1-b", "1,2 3 5,4"),
        ("eu2-a", "3 1,2 5,4"),
        ("us1-a", "4 5,1,2,3"),
        ("dark-a", "5,1,2,3,4"),
        ("lost", "5,1,2,3,4"),
    ];
    for (pod, expected) in table {
        assert_eq!(sees(&snapshot, pod), expected, "{pod}");
    }
}

#[test]
fn a_zone_without_a_region_counts_and_no_name_is_no_place() {
    let mut only_zone = on("10.0.0.1", Ready, "eu1-a");
    only_zone.locality = Some(Locality::new("", "eu1"));
    let mut nowhere = on("10.0.0.2", Ready, "eu1-a");
    nowhere.locality = Some(Locality::new("", ""));
    let mut twin_zone = on("10.0.0.3", Ready, "us1-a");
    twin_zone.locality = Some(Locality::new("us", "eu1"));
    let snapshot = snapshot(TrafficScope::Cluster, vec![only_zone, nowhere, twin_zone]);
    assert_eq!(sees(&snapshot, "eu1-a"), "1 2,3");
    assert_eq!(sees(&snapshot, "us1-a"), "3 2,1");
}

#[test]
fn priorities_have_no_gap_and_unready_ones_are_left_out() {
    let far = vec![on("10.0.0.1", Unready, "eu1-a"), on("10.0.0.4", Ready, "us1-a")];
    assert_eq!(sees(&snapshot(TrafficScope::Cluster, far), "eu1-a"), "4");
    assert_eq!(sees(&snapshot(TrafficScope::Cluster, vec![]), "eu1-a"), "");
    let unfit = vec![on("10.0.0.1", Unready, "eu1-a")];
    assert_eq!(sees(&snapshot(TrafficScope::Cluster, unfit), "eu1-a"), "");
}

#[test]
fn draining_ones_serve_where_nothing_is_ready() {
    let mixed = vec![on("10.0.0.1", Draining, "eu1-a"), on("10.0.0.2", Ready, "us1-a")];
    assert_eq!(sees(&snapshot(TrafficScope::Cluster, mixed.clone()), "eu1-a"), "2");
    // Of its own node alone: what is ready elsewhere does not count.
    let local = snapshot(TrafficScope::Node, mixed);
    assert_eq!(sees(&local, "eu1-a"), "1");
    assert_eq!(sees(&local, "us1-a"), "2");
    let draining = vec![on("10.0.0.1", Draining, "eu1-a"), on("10.0.0.2", Unready, "us1-a")];
    assert_eq!(sees(&snapshot(TrafficScope::Cluster, draining), "us1-a"), "1");
}

#[test]
fn the_own_node_first_or_alone() {
    let mut all = everywhere();
    all.push(on("10.0.0.6", Ready, "dark-a"));
    all[5].locality = None;
    let first = snapshot(TrafficScope::PreferNode, all.clone());
    for (pod, expected) in [
        ("eu1-a", "1 2 3 5,6,4"),
        ("eu1-b", "2 1 3 5,6,4"),
        ("us1-a", "4 5,6,1,2,3"),
        ("dark-a", "6 5,1,2,3,4"),
        ("lost", "5,6,1,2,3,4"),
    ] {
        assert_eq!(sees(&first, pod), expected, "{pod}");
    }
    let alone = snapshot(TrafficScope::Node, all);
    for (pod, expected) in [("eu1-a", "1"), ("us1-a", "4"), ("dark-a", "6"), ("lost", "")] {
        assert_eq!(sees(&alone, pod), expected, "{pod}");
    }
}

#[test]
fn weights_are_written_where_they_say_something() {
    let mut heavy = on("10.0.0.1", Ready, "eu1-a");
    heavy.weight = 1000;
    let snapshot = snapshot(TrafficScope::Cluster, vec![heavy, on("10.0.0.2", Ready, "eu1-a")]);
    let view = view(&snapshot, "pod/shop/lost", "delta");
    let all: BTreeMap<String, ClusterLoadAssignment> = decoded(&view, Kind::Endpoints);
    let hosts = &all["shop/cart:80"].endpoints[0].lb_endpoints;
    let weights: Vec<_> = hosts.iter().map(|h| h.load_balancing_weight.map(|w| w.value)).collect();
    assert_eq!(weights, [Some(1000), None]);
}
