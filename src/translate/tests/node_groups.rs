//! Node proxies: the tables of their pods, side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::listener::v3::{FilterChain, Listener};

use super::nodes::{ALL, filters, member, mesh, names, pinned, translate};
use super::world::{decoded, everything, settings, view};
use crate::model::{Projection, Upstreams};
use crate::translate::{CaptureMode, Translator};
use crate::xds::{Kind, Snapshot};

/// The two pods of a node, one of which lists its upstreams.
fn mixed(listed: &[&str]) -> Projection {
    let mut mesh = mesh();
    let mut scoped = member("pay/till", "n1", "u2");
    let listed = listed.iter().map(|key| key.parse().unwrap()).collect();
    scoped.upstreams = Upstreams::Listed(Arc::new(listed));
    mesh.pods.insert(scoped.key.clone(), Arc::new(scoped));
    mesh
}

#[test]
fn a_pod_that_lists_its_upstreams_shares_a_node_with_one_that_does_not() {
    for mode in [ALL, CaptureMode::Scoped] {
        let snapshot = translate(settings(mode), &mixed(&["pay/both"]));
        let seen = view(&snapshot, "node/n1", "delta");
        let routes = ["cap_http", "cap_http.pay.till", "cap_http.shop"];
        assert_eq!(names(&seen, Kind::Routes), routes);
        let hosts = [
            "cap_http.pay.till/any",
            "cap_http.pay.till/both.pay",
            "cap_http.shop/any",
            "cap_http.shop/both.pay",
            "cap_http.shop/web.shop",
        ];
        assert_eq!(names(&seen, Kind::VirtualHost), hosts);
        // The table of the qualified names is that of the whole mesh.
        let whole = view(&snapshot, "pod/shop/web", "sotw").version(Kind::Routes, "cap_http");
        let scoped = view(&snapshot, "pod/pay/till", "sotw").version(Kind::Routes, "cap_http");
        assert!(whole != scoped);
        assert_eq!(view(&snapshot, "node/n1", "sotw").version(Kind::Routes, "cap_http"), whole);
        // Each listener has the chains of what its pod sees, and the routes of its pod.
        let own = |node| -> BTreeMap<String, Listener> {
            decoded(&view(&snapshot, node, "delta"), Kind::Listener)
        };
        let of_node = own("node/n1");
        for (sidecar, name) in
            [("pod/pay/till", "capture_pay_till"), ("pod/shop/web", "capture_shop_web")]
        {
            let mut on_node = of_node[name].clone();
            let told = |chain: &FilterChain| {
                filters(chain).starts_with(&["set_filter_state", "http_connection_manager"])
            };
            for chain in &mut on_node.filter_chains {
                assert_eq!(told(chain), mode == ALL && chain.name.starts_with("cap_http"));
                if told(chain) {
                    chain.filters.remove(0);
                }
            }
            assert_eq!(on_node.filter_chains, own(sidecar)[name].filter_chains, "{name} {mode}");
        }
    }
}

#[test]
fn every_cluster_is_marked_where_all_pods_of_a_node_list_their_upstreams() {
    let mut translator = Translator::new(settings(ALL));
    let mut mesh = mixed(&["pay/both"]);
    // The first node proxy comes after the scope.
    let pins = mesh.pins.take();
    translator.translate(&mesh);
    mesh.pins = pins.map(|_| pinned(&["u2"]));
    let snapshot = translator.translate(&mesh).snapshot;
    assert!(everything(&snapshot) == everything(&translate(settings(ALL), &mesh)));
    let clusters: BTreeMap<String, Cluster> =
        decoded(&view(&snapshot, "node/n1", "delta"), Kind::Cluster);
    let of_pod = view(&snapshot, "pod/pay/till", "delta");
    assert_eq!(clusters.keys().cloned().collect::<Vec<_>>(), names(&of_pod, Kind::Cluster));
    assert!(clusters.values().all(|cluster| cluster.upstream_bind_config.is_some()));
    let of_pod: BTreeMap<String, Cluster> = decoded(&of_pod, Kind::Cluster);
    assert!(of_pod.values().all(|cluster| cluster.upstream_bind_config.is_none()));
}

#[test]
fn another_list_behind_a_node_is_another_group() {
    let mut translator = Translator::new(settings(ALL));
    let before = translator.translate(&mixed(&["pay/both"])).snapshot;
    let after = translator.translate(&mixed(&["shop/web"])).snapshot;
    let (old, new) = (view(&before, "node/n1", "delta"), view(&after, "node/n1", "delta"));
    // What the tables remember does not tell the difference, so all must be compared.
    assert!(!new.same_shape(&old));
    let gone: Arc<str> = "cap_http.pay.till/both.pay".into();
    assert!(old.names(Kind::VirtualHost).contains(&gone));
    assert!(!new.names(Kind::VirtualHost).contains(&gone));
}

#[test]
fn nodes_of_like_pods_share_a_group_that_stays_while_its_parts_do() {
    let mut mesh = mesh();
    for (key, node, uid) in [("shop/twin", "n2", "u8"), ("pay/twin", "n2", "u9")] {
        let pod = member(key, node, uid);
        mesh.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    mesh.pins = Some(pinned(&["u1", "u2", "u8", "u9"]));
    // The namespace of this pod is named like the nodes' own groups begin.
    let pod = member("node/pod", "n3", "u10");
    mesh.pods.insert(pod.key.clone(), Arc::new(pod));
    let mut translator = Translator::new(settings(ALL));
    let before = translator.translate(&mesh).snapshot;
    let group =
        |snapshot: &Arc<Snapshot>, node: &str| snapshot.groups[&snapshot.nodes[node].group].clone();
    assert!(Arc::ptr_eq(&group(&before, "node/n1"), &group(&before, "node/n2")));
    assert!(!names(&view(&before, "pod/node/pod", "delta"), Kind::Cluster).is_empty());
    assert!(names(&view(&before, "node/n3", "delta"), Kind::Cluster).is_empty());
    mesh.pins = Some(pinned(&["u1", "u2", "u8", "u9", "u10"]));
    let after = translator.translate(&mesh).snapshot;
    assert!(Arc::ptr_eq(&group(&before, "node/n1"), &group(&after, "node/n1")));
    assert!(!names(&view(&after, "node/n3", "delta"), Kind::Cluster).is_empty());
}
