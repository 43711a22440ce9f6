#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use serde_json::json;

fn render() -> Value {
    json!({
        "listeners": [{"name": "capture", "address": {"port": 18001}}],
        "routes": [{"name": "cap_http.a", "virtual_hosts": [{"name": "x"}, {"name": "y"}]}],
        "clusters": [
            {"name": "http:x", "connect_timeout": "5s", "eds_cluster_config": {}},
            {"name": "passthrough", "type": "ORIGINAL_DST"},
        ],
        "endpoints": [{"cluster_name": "a/x:80", "endpoints": [
            {"priority": 1, "locality": {"zone": "z"}, "lb_endpoints": [host("10.0.0.2"), host("10.0.0.1")]},
        ]}],
    })
}

fn host(ip: &str) -> Value {
    json!({"endpoint": {"address": {"socket_address": {"address": ip, "port_value": 80}}}})
}

fn dump() -> Value {
    let any = |mut value: Value| {
        value["@type"] = "type.googleapis.com/x".into();
        value
    };
    let hosts: Vec<Value> = ["10.0.0.1", "10.0.0.2"]
        .map(host)
        .into_iter()
        .map(|mut host| {
            host["health_status"] = "HEALTHY".into();
            host["load_balancing_weight"] = 1.into();
            host["metadata"] = json!({});
            host
        })
        .collect();
    let assignment = json!({"cluster_name": "a/x:80", "policy": {}, "endpoints": [
        {"locality": {"region": "", "zone": "z"}, "priority": 1, "lb_endpoints": hosts}]});
    json!({"configs": [
        {"dynamic_listeners": [
            {"name": "capture", "active_state": {"listener": any(render()["listeners"][0].clone())}},
            {"name": "old", "draining_state": {"listener": {"name": "old"}}},
        ]},
        {"dynamic_route_configs": [{"route_config": any(json!({"name": "cap_http.a",
            "vhds": {}, "virtual_hosts": [{"name": "y"}, {"name": "x"}]}))}]},
        {"dynamic_active_clusters": [
            {"cluster": any(render()["clusters"][0].clone())},
            {"cluster": any(render()["clusters"][1].clone())},
        ]},
        {"dynamic_endpoint_configs": [
            {"endpoint_config": assignment}, {"endpoint_config": {"cluster_name": "passthrough"}},
        ]},
    ]})
}

#[test]
fn what_envoy_adds_does_not_count() {
    let rendered = Loaded::of_render(&render()).unwrap();
    rendered.must_equal(&Loaded::of_dump(&dump()).unwrap()).unwrap();
    assert_eq!((rendered.len(), rendered.names("clusters")), (5, vec!["http:x", "passthrough"]));
}

#[test]
fn every_other_difference_counts() {
    let rendered = Loaded::of_render(&render()).unwrap();
    for (at, value, words) in [
        (
            "/configs/0/dynamic_listeners/0/active_state/listener/address/port",
            json!(1),
            ".address.port is 18001",
        ),
        (
            "/configs/1/dynamic_route_configs/0/route_config/virtual_hosts/0/name",
            json!("z"),
            ".virtual_hosts.1.name",
        ),
        ("/configs/1/dynamic_route_configs", json!([]), "Envoy lacks routes cap_http.a"),
        (
            "/configs/2/dynamic_active_clusters/0/cluster/name",
            json!("http:z"),
            "2 resources differ",
        ),
        (
            "/configs/2/dynamic_active_clusters/0/cluster/connect_timeout",
            json!("6s"),
            "\"5s\" in render and \"6s\"",
        ),
        (
            "/configs/3/dynamic_endpoint_configs/0/endpoint_config/endpoints/0/priority",
            json!(0),
            ".priority is 1",
        ),
        (
            "/configs/3/dynamic_endpoint_configs/0/endpoint_config/endpoints/0/lb_endpoints/1/health_status",
            json!("DRAINING"),
            "DRAINING",
        ),
        (
            "/configs/3/dynamic_endpoint_configs/0/endpoint_config/endpoints/0/lb_endpoints/1/load_balancing_weight",
            json!(2),
            ".weight is 1",
        ),
    ] {
        let mut dump = dump();
        *dump.pointer_mut(at).unwrap() = value;
        let error = rendered.must_equal(&Loaded::of_dump(&dump).unwrap()).unwrap_err();
        assert!(error.to_string().contains(words), "{at}: {error}");
    }
}

#[test]
fn what_is_not_active_is_an_error() {
    for (at, key) in [
        ("/configs/0/dynamic_listeners/0", "warming_state"),
        ("/configs/0/dynamic_listeners/0", "error_state"),
        ("/configs/1/dynamic_route_configs/0", "error_state"),
        ("/configs/2/dynamic_active_clusters/0", "error_state"),
    ] {
        let mut dump = dump();
        dump.pointer_mut(at).unwrap()[key] = json!({});
        assert!(Loaded::of_dump(&dump).unwrap_err().to_string().contains(key));
    }
    let mut warming = dump();
    warming["configs"][2]["dynamic_warming_clusters"] = json!([{"cluster": {"name": "w"}}]);
    assert!(Loaded::of_dump(&warming).is_err());
}
