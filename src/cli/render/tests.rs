#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, Rds, http_connection_manager::RouteSpecifier,
};
use envoy_types::pb::google::protobuf::Any;
use serde_json::{Value, json};

use super::*;
use crate::model::{Finding, MeshPod, ObjectRef, Place, PodKey, Projection, Reason, Severity};
use crate::run::Once;
use crate::xds::{Entry, Group, Kind, Layer, NodeSpec, Own, Resource, Snapshot, Stem, Table};

const HCM: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// A chain whose HTTP connection manager asks for routes over RDS.
fn chain(routes: &str) -> FilterChain {
    let rds = Rds { route_config_name: routes.to_owned(), ..Rds::default() };
    let manager = HttpConnectionManager {
        stat_prefix: "s".to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(rds)),
        ..HttpConnectionManager::default()
    };
    let any = Any { type_url: HCM.to_owned(), value: manager.encode_to_vec() };
    let filter =
        Filter { name: "h".to_owned(), config_type: Some(filter::ConfigType::TypedConfig(any)) };
    FilterChain { filters: vec![filter], ..FilterChain::default() }
}

fn plain(kind: Kind, name: &str, body: Vec<u8>, needs: Option<&str>) -> (Arc<str>, Entry) {
    (name.into(), Entry::Plain(Resource::new(kind, name, body, needs.map(Into::into))))
}

fn routes(name: &str) -> (Arc<str>, Entry) {
    let host = VirtualHost {
        name: "any".to_owned(),
        domains: vec!["*".to_owned()],
        ..VirtualHost::default()
    };
    let table = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![host],
        ..RouteConfiguration::default()
    };
    plain(Kind::Routes, name, table.encode_to_vec(), None)
}

fn assignment(name: &str) -> (Arc<str>, Entry) {
    let it =
        ClusterLoadAssignment { cluster_name: name.to_owned(), ..ClusterLoadAssignment::default() };
    plain(Kind::Endpoints, name, it.encode_to_vec(), None)
}

/// A node with a listener of two chains, the default one included, a cluster, and more than it
/// asks for. `left_out` is not served.
fn snapshot(left_out: &str) -> Arc<Snapshot> {
    let cluster = Cluster {
        name: "http:cart".to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            service_name: "shop/cart:80".to_owned(),
            ..EdsClusterConfig::default()
        }),
        ..Cluster::default()
    };
    let cluster = plain(Kind::Cluster, "http:cart", cluster.encode_to_vec(), Some("shop/cart:80"));
    let tail = Listener {
        filter_chains: vec![chain("cap_http.shop")],
        default_filter_chain: Some(chain("other")),
        ..Listener::default()
    };
    let head = Listener { name: "capture_shop_web".to_owned(), ..Listener::default() };
    let table = |kind, entries: Vec<(Arc<str>, Entry)>| {
        let entries = entries.into_iter().filter(|(name, _)| **name != *left_out);
        (kind, vec![Layer::plain(Table::new(kind, 1, entries.collect()))])
    };
    let group = Group::new(BTreeMap::from([
        table(Kind::Cluster, vec![cluster]),
        table(Kind::Endpoints, vec![assignment("shop/cart:80"), assignment("shop/else:80")]),
        table(Kind::Routes, vec![routes("cap_http"), routes("cap_http.shop"), routes("other")]),
    ]));
    let own = Own {
        kind: Kind::Listener,
        name: "capture_shop_web".into(),
        head: Bytes::from(head.encode_to_vec()),
        stem: "capture".into(),
    };
    let node = NodeSpec {
        group: "shop".into(),
        lenses: Vec::new(),
        own: vec![own],
        identity: None,
        retry: false,
    };
    Arc::new(Snapshot {
        generation: 1,
        nodes: vec![(Arc::<str>::from("pod/shop/web"), Arc::new(node))].into(),
        groups: [("shop".into(), Arc::new(group))].into(),
        stems: [("capture".into(), Stem::new(tail.encode_to_vec()))].into(),
        heard: 0,
        origin: None,
    })
}

fn resources(snapshot: &Arc<Snapshot>) -> Result<Resources> {
    Resources::of(&View::new(snapshot, "pod/shop/web", &"sotw".into()).unwrap())
}

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn a_node_gets_what_its_resources_name_and_nothing_else() {
    let json = serde_json::to_value(resources(&snapshot("")).unwrap()).unwrap();
    assert_eq!(names(&json["listeners"], "name"), ["capture_shop_web"]);
    assert_eq!(names(&json["routes"], "name"), ["cap_http.shop", "other"]);
    assert_eq!(names(&json["clusters"], "name"), ["http:cart"]);
    assert_eq!(names(&json["endpoints"], "cluster_name"), ["shop/cart:80"]);
    assert_eq!(json["routes"][0]["virtual_hosts"], json!([{"name": "any", "domains": ["*"]}]));
    let manager = &json["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
    assert_eq!(manager["@type"], HCM);
    assert_eq!(manager["rds"]["route_config_name"], "cap_http.shop");
}

#[test]
fn what_is_asked_for_and_not_served_is_an_error() {
    for name in ["cap_http.shop", "shop/cart:80"] {
        let error = resources(&snapshot(name)).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_static_bootstrap_has_every_name_resolved() {
    let resources = resources(&snapshot("")).unwrap();
    let bootstrap = inline::bootstrap(&resources, &"pod/shop/web".parse().unwrap(), None).unwrap();
    let json =
        descriptors::to_json("envoy.config.bootstrap.v3.Bootstrap", &bootstrap.encode_to_vec());
    let json = json.unwrap();
    let text = json.to_string();
    for word in ["\"rds\"", "\"eds", "EDS", "\"ads\"", "dynamic_resources"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert_eq!(json["node"]["id"], "pod/shop/web");
    let listener = &json["static_resources"]["listeners"][0];
    for (chain, table) in [("filter_chains", "cap_http.shop"), ("default_filter_chain", "other")] {
        let chain = listener[chain].get(0).unwrap_or(&listener[chain]);
        let routes = &chain["filters"][0]["typed_config"]["route_config"];
        assert_eq!(routes["name"], table);
        assert_eq!(routes["virtual_hosts"][0]["name"], "any");
        assert_eq!(routes["validate_clusters"], false);
    }
    let cluster = &json["static_resources"]["clusters"][0];
    assert_eq!(cluster["type"], "STATIC");
    assert_eq!(cluster["load_assignment"]["cluster_name"], "shop/cart:80");
}

fn once(pods: &[(&str, Option<&str>)], managed: &[&str], findings: Vec<Finding>) -> Once {
    let pod = |key: &&str| {
        let key: PodKey = key.parse().unwrap();
        let pod = MeshPod {
            key: key.clone(),
            uid: None,
            place: Place::default(),
            ipv6: false,
            service_account: "default".into(),
            upstreams: crate::model::Upstreams::All,
        };
        (key, Arc::new(pod))
    };
    let read =
        |(key, label): &(&str, Option<&str>)| (key.parse().unwrap(), label.map(str::to_owned));
    Once {
        projection: Projection { pods: managed.iter().map(pod).collect(), ..Projection::default() },
        snapshot: Arc::default(),
        findings,
        pods: pods.iter().map(read).collect(),
    }
}

#[test]
fn a_pod_that_waits_is_told_why() {
    let pods = [
        ("shop/web", Some("true")),
        ("shop/off", Some("no")),
        ("shop/bare", None),
        ("kube-system/x", Some("true")),
    ];
    let managed = ["shop/web", "pay/ledger"];
    let finding = Finding {
        object: ObjectRef::new("Pod", "kube-system", "x"),
        severity: Severity::Warning,
        reason: Reason::NotCaptured,
        origin: None,
        field: String::new(),
        message: "never".to_owned(),
        way_out: "move it".to_owned(),
    };
    let table: [(&str, &[&str]); 7] = [
        ("pod/shop/off", &["is not managed", "\"no\"", "aether.io/managed=true"]),
        ("pod/shop/bare", &["is not managed", "no label", "aether.io/managed=true"]),
        ("pod/shop/wbe", &["no pod shop/wbe", "4 that were read", "did you mean pod/shop/web?"]),
        ("pod/elsewhere/ledger", &["did you mean pod/pay/ledger?"]),
        ("pod/qqqqq/zzzzz", &["managed are pod/pay/ledger, pod/shop/web"]),
        ("pod/kube-system/x", &["labelled, but not taken", "never; move it"]),
        ("node/worker-1", &["no folder of pinned network namespaces", "--netns-dir"]),
    ];
    let once = once(&pods, &managed, vec![finding]);
    for (id, expected) in table {
        let why = waiting::why(&id.parse().unwrap(), &once);
        for words in expected {
            assert!(why.contains(words), "{id}: {why}");
        }
    }
    let none = waiting::why(&"pod/a/b".parse().unwrap(), &self::once(&[], &[], Vec::new()));
    assert!(none.contains("none of them is managed"), "{none}");
}
