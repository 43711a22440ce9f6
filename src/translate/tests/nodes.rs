//! Node proxies: whom they serve, and what is theirs alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_option::Value;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::{FilterChain, Listener};

use super::world::{
    HTTP, TCP, decoded, endpoint, everything, place, pod, projection, service, settings, view,
};
use crate::model::{Health, Locality, MeshPod, Pins, Projection, TrafficScope};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};
use crate::xds::{Kind, Snapshot, View};

pub(super) const ALL: CaptureMode = CaptureMode::RedirectAll;

pub(super) fn pinned(uids: &[&str]) -> Arc<Pins> {
    let uids = uids.iter().map(|uid| Arc::from(*uid)).collect();
    Arc::new(Pins { folder: "/run/aether/netns".into(), uids })
}

pub(super) fn member(key: &str, node: &str, uid: &str) -> MeshPod {
    MeshPod { uid: Some(uid.into()), ..pod(key, place(node, "eu", "eu-1")) }
}

/// Two nodes; on the first, two pods of two namespaces that are pinned and one that is not.
pub(super) fn mesh() -> Projection {
    let services = [
        service("shop/web", &["10.96.0.1"], &[(80, HTTP)]),
        service("pay/db", &["10.96.0.2"], &[(5432, TCP)]),
        service("pay/both", &["10.96.0.3"], &[(80, HTTP), (81, TCP)]),
    ];
    let mut dual = member("pay/till", "n1", "u2");
    dual.ipv6 = true;
    let pods = [
        member("shop/web", "n1", "u1"),
        dual,
        member("shop/late", "n1", "u3"),
        member("far/away", "n2", "u4"),
        pod("shop/no-uid", place("n1", "eu", "eu-1")),
    ];
    let mut mesh = projection(services, pods);
    let nodes = [("n1", Some("eu-1")), ("n2", None), ("empty", Some("eu-2"))];
    let nodes = nodes.map(|(node, zone)| (node.into(), zone.map(|z| Locality::new("eu", z))));
    mesh.nodes = Arc::new(nodes.into());
    mesh.pins = Some(pinned(&["u1", "u2", "stranger"]));
    mesh
}

pub(super) fn translate(settings: Settings, mesh: &Projection) -> Arc<Snapshot> {
    Translator::new(settings).translate(mesh).snapshot
}

pub(super) fn names(view: &View, kind: Kind) -> Vec<String> {
    view.names(kind).iter().map(ToString::to_string).collect()
}

/// Where a listener listens: the file of its network namespace and its address, of each.
fn addresses(listener: &Listener) -> Vec<(String, String)> {
    let more = listener.additional_addresses.iter().map(|more| more.address.as_ref());
    let all = [listener.address.as_ref()].into_iter().chain(more);
    all.map(|address| match address.unwrap().address.as_ref().unwrap() {
        Address::SocketAddress(socket) => {
            (socket.network_namespace_filepath.clone(), socket.address.clone())
        }
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_node_has_the_listeners_of_its_pods_that_are_pinned() {
    let dns = Settings { dns: Some(DnsFilter::default()), ..settings(ALL) };
    let snapshot = translate(dns, &mesh());
    let seen = view(&snapshot, "node/n1", "delta");
    let listeners: BTreeMap<String, Listener> = decoded(&seen, Kind::Listener);
    let of = |uid: &str| format!("/run/aether/netns/{uid}");
    let v4 = |uid| vec![(of(uid), "127.0.0.1".to_owned())];
    let both = |uid| [v4(uid), vec![(of(uid), "::1".to_owned())]].concat();
    let wanted = [
        ("capture_pay_till", both("u2")),
        ("capture_shop_web", v4("u1")),
        ("dns_pay_till", both("u2")),
        ("dns_shop_web", v4("u1")),
    ];
    let found: Vec<_> = listeners.iter().map(|(name, l)| (name.as_str(), addresses(l))).collect();
    assert_eq!(found, wanted);
    // The pods' own proxies listen where they run.
    let own: BTreeMap<String, Listener> =
        decoded(&view(&snapshot, "pod/shop/web", "delta"), Kind::Listener);
    assert!(own.values().flat_map(addresses).all(|(netns, _)| netns.is_empty()));
}

#[test]
fn a_node_sees_the_tables_of_all_namespaces_of_its_pods() {
    let snapshot = translate(settings(ALL), &mesh());
    let seen = view(&snapshot, "node/n1", "delta");
    assert_eq!(names(&seen, Kind::Routes), ["cap_http", "cap_http.pay", "cap_http.shop"]);
    let hosts = names(&seen, Kind::VirtualHost);
    let prefixes = ["cap_http.pay/", "cap_http.shop/"];
    let wanted =
        prefixes.iter().flat_map(|p| ["any", "both.pay", "web.shop"].map(|n| format!("{p}{n}")));
    assert_eq!(hosts, wanted.collect::<Vec<_>>());
    let sidecar = view(&snapshot, "pod/shop/web", "delta");
    for kind in [Kind::Cluster, Kind::Endpoints] {
        assert_eq!(names(&seen, kind), names(&sidecar, kind));
    }
    // Each pod's listener names the routes of its own namespace.
    let listeners: BTreeMap<String, Listener> = decoded(&seen, Kind::Listener);
    for (name, own, other) in [
        ("capture_pay_till", "cap_http.pay", "cap_http.shop"),
        ("capture_shop_web", "cap_http.shop", "cap_http.pay"),
    ] {
        let text = format!("{:?}", listeners[name].filter_chains);
        let holds = |text: &str, word: &str| {
            let bytes = format!("{:?}", word.as_bytes());
            text.contains(bytes.trim_matches(['[', ']']))
        };
        assert!(holds(&text, own) && !holds(&text, other), "{name}");
    }
}

#[test]
fn a_node_waits_while_no_pins_are_known_and_is_served_without_any_pod() {
    let mut mesh = mesh();
    mesh.pins = None;
    let mut translator = Translator::new(settings(ALL));
    let waits = translator.translate(&mesh).snapshot;
    assert!(waits.nodes.keys().all(|id| id.starts_with("pod/")));
    mesh.pins = Some(pinned(&[]));
    let empty = translator.translate(&mesh).snapshot;
    let known: Vec<_> = empty.nodes.keys().filter(|id| id.starts_with("node/")).collect();
    assert_eq!(known.len(), 3, "{known:?}");
    for node in ["node/n1", "node/n2", "node/empty"] {
        let view = view(&empty, node, "delta");
        assert!(Kind::ALL.into_iter().all(|kind| view.names(kind).is_empty()), "{node}");
    }
    // A node that is named by a pod alone.
    mesh.nodes = Arc::default();
    let by_pods = translator.translate(&mesh).snapshot;
    assert!(by_pods.nodes.contains_key("node/n2") && !by_pods.nodes.contains_key("node/empty"));
}

#[test]
fn every_cluster_of_a_node_is_marked_and_no_cluster_of_a_sidecar() {
    for mode in [ALL, CaptureMode::Scoped] {
        let snapshot = translate(settings(mode), &mesh());
        let of_node: BTreeMap<String, Cluster> =
            decoded(&view(&snapshot, "node/n1", "delta"), Kind::Cluster);
        let of_pod: BTreeMap<String, Cluster> =
            decoded(&view(&snapshot, "pod/shop/web", "delta"), Kind::Cluster);
        assert!(of_node.len() >= 4);
        for (name, cluster) in of_node {
            let bind = cluster.upstream_bind_config.clone().unwrap();
            let option = &bind.socket_options[0];
            assert_eq!((option.level, option.name, option.state), (1, 36, 0), "{name}");
            assert_eq!(option.value, Some(Value::IntValue(0xae7e)), "{name}");
            let passes = name == "passthrough_original_dst";
            assert_eq!(bind.source_address.is_some(), passes, "{name}");
            assert_eq!(bind.extra_source_addresses.len(), usize::from(passes), "{name}");
            assert_eq!(bind.local_address_selector.is_some(), passes, "{name}");
            // But for that, it is what a sidecar has.
            assert_eq!(Cluster { upstream_bind_config: None, ..cluster }, of_pod[&name]);
        }
    }
}

/// The types of the filters of a chain, without their common beginnings.
pub(super) fn filters(chain: &FilterChain) -> Vec<&str> {
    chain.filters.iter().map(|filter| filter.name.rsplit('.').next().unwrap()).collect()
}

#[test]
fn what_may_pass_through_is_told_its_namespace_on_nodes_alone() {
    for (mode, through) in [(ALL, true), (CaptureMode::Scoped, false)] {
        let snapshot = translate(settings(mode), &mesh());
        for (node, told) in [("node/n1", through), ("pod/shop/web", false)] {
            let mut listeners: BTreeMap<String, Listener> =
                decoded(&view(&snapshot, node, "delta"), Kind::Listener);
            let listener = listeners.remove("capture_shop_web").unwrap();
            let before: &[&str] = if told { &["set_filter_state"] } else { &[] };
            let with = |last: &'static str| [before, &[last]].concat();
            for chain in &listener.filter_chains {
                let wanted = match chain.name.as_str() {
                    name if name.starts_with("cap_http") => with("http_connection_manager"),
                    "cap_self" => vec!["tcp_proxy"],
                    _ => vec!["set_filter_state", "tcp_proxy"],
                };
                assert_eq!(filters(chain), wanted, "{node} {mode}: {}", chain.name);
            }
            let default = listener.default_filter_chain.as_ref().map(filters);
            assert_eq!(default, (mode == ALL).then(|| with("tcp_proxy")), "{node} {mode}");
        }
    }
}

#[test]
fn a_node_sends_to_its_own_zone_and_node_first() {
    let mut mesh = mesh();
    let mut local = service("shop/local", &["10.96.0.9"], &[(80, HTTP)]);
    local.scope = TrafficScope::Node;
    let mut zonal = service("shop/zonal", &["10.96.0.8"], &[(80, HTTP)]);
    for (n, (node, zone)) in [("n1", "eu-1"), ("n2", "eu-2")].into_iter().enumerate() {
        let mut one = endpoint(&format!("10.1.0.{}", n + 1), Health::Ready);
        (one.node, one.locality) = (Some(node.into()), Some(Locality::new("eu", zone)));
        for service in [&mut local, &mut zonal] {
            service.ports[0].endpoints.push(one.clone());
        }
    }
    for service in [local, zonal] {
        mesh.services.insert(service.key.clone(), Arc::new(service));
    }
    let snapshot = translate(settings(ALL), &mesh);
    let of = |node| -> BTreeMap<String, ClusterLoadAssignment> {
        decoded(&view(&snapshot, node, "delta"), Kind::Endpoints)
    };
    let (node, sidecar) = (of("node/n1"), of("pod/shop/web"));
    assert_eq!(node, sidecar);
    assert_eq!(node["shop/local:80"].endpoints[0].lb_endpoints.len(), 1);
    let priorities = node["shop/zonal:80"].endpoints.iter().map(|group| group.priority);
    assert!(priorities.max() > Some(0));
}

#[test]
fn two_pods_with_one_uid_cost_the_second_its_listener() {
    let mut mesh = mesh();
    let twin = member("shop/zwin", "n1", "u1");
    mesh.pods.insert(twin.key.clone(), Arc::new(twin));
    let translated = Translator::new(settings(ALL)).translate(&mesh);
    let seen = view(&translated.snapshot, "node/n1", "delta");
    assert_eq!(names(&seen, Kind::Listener), ["capture_pay_till", "capture_shop_web"]);
    let all: Vec<_> = translated.findings.iter().collect();
    let [finding] = all.as_slice() else { panic!("{all:?}") };
    let text = finding.to_string();
    assert!(&*finding.object.name == "zwin" && finding.field == "metadata.uid", "{finding:?}");
    for word in ["\"u1\"", "shop/web"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn pins_change_what_nodes_see_and_nothing_of_sidecars() {
    let mut translator = Translator::new(settings(ALL));
    let mut mesh = mesh();
    let steps: [Option<&[&str]>; 6] =
        [None, Some(&[]), Some(&["u1"]), Some(&["u1", "u4"]), Some(&["u4"]), None];
    let mut first = None;
    for pins in steps {
        mesh.pins = pins.map(pinned);
        let snapshot = translator.translate(&mesh).snapshot;
        let mut all = everything(&snapshot);
        // The way that led there does not matter.
        assert!(all == everything(&translate(settings(ALL), &mesh)), "{pins:?}");
        all.retain(|(node, ..), _| node.starts_with("pod/"));
        assert!(*first.get_or_insert_with(|| all.clone()) == all, "{pins:?}");
        // Nothing has changed: nothing is published.
        assert!(Arc::ptr_eq(&translator.translate(&mesh).snapshot, &snapshot), "{pins:?}");
    }
}

#[test]
fn a_change_of_one_namespace_is_told_a_node_by_name() {
    let mut translator = Translator::new(settings(ALL));
    let mut mesh = mesh();
    let before = translator.translate(&mesh).snapshot;
    let new = service("pay/new", &["10.96.0.7"], &[(80, HTTP)]);
    mesh.services.insert(new.key.clone(), Arc::new(new));
    let after = translator.translate(&mesh).snapshot;
    let (old, new) = (view(&before, "node/n1", "delta"), view(&after, "node/n1", "delta"));
    assert!(new.same_shape(&old));
    let changed = new.changed_since(Kind::VirtualHost, old.generation()).unwrap();
    let wanted = ["cap_http.pay/new.pay", "cap_http.shop/new.pay"].map(Arc::from);
    assert_eq!(changed, BTreeSet::from(wanted));
}
