//! What can be seen of a server that runs: by grpcurl, by `aether status`, and on the admin server's pages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "seeing/stage.rs"]
mod stage;

use serde_json::{Value, json};
use stage::{CALLER, REFUSER, SOON, Stage};

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
const CSDS: &str = "envoy.service.status.v3.ClientStatusDiscoveryService";

const SERVICES: &str = "\
envoy.service.cluster.v3.ClusterDiscoveryService
envoy.service.discovery.v3.AggregatedDiscoveryService
envoy.service.endpoint.v3.EndpointDiscoveryService
envoy.service.listener.v3.ListenerDiscoveryService
envoy.service.route.v3.RouteDiscoveryService
envoy.service.route.v3.VirtualHostDiscoveryService
envoy.service.status.v3.ClientStatusDiscoveryService
grpc.health.v1.Health
grpc.reflection.v1.ServerReflection
grpc.reflection.v1alpha.ServerReflection
";

#[tokio::test]
async fn what_proxies_have_is_seen_from_outside() {
    let stage = Stage::start().await.unwrap();
    grpcurl_lists_and_describes(&stage);
    both_protocols_are_readable(&stage);
    csds_tells_what_each_proxy_has(&stage);
    status_has_a_line_for_each_proxy(&stage).await;
    pages_are_shown(&stage).await;
    latencies_are_measured(&stage).await;
}

fn grpcurl_lists_and_describes(stage: &Stage) {
    assert_eq!(stage.grpcurl(&[], &["list"]).unwrap(), SERVICES);
    let methods = stage.grpcurl(&[], &["list", ADS]).unwrap();
    assert!(methods.contains("DeltaAggregatedResources"), "{methods}");
    // Every service and whatever may stand in an answer.
    let services = SERVICES.lines().chain([
        "envoy.config.cluster.v3.Cluster",
        "envoy.config.listener.v3.Listener",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    ]);
    for name in services {
        let text = stage.grpcurl(&[], &["describe", name]).unwrap();
        assert!(text.starts_with(&format!("{name} is a ")), "{text}");
    }
    for service in ["", ADS, CSDS] {
        let data = json!({ "service": service }).to_string();
        let health = stage.grpcurl(&["-d", &data], &["grpc.health.v1.Health/Check"]).unwrap();
        assert_eq!(health.split_whitespace().collect::<String>(), r#"{"status":"SERVING"}"#);
    }
}

/// What a method answers to one request.
fn ask(stage: &Stage, method: &str, request: &Value) -> Value {
    let text = stage.grpcurl(&["-d", &request.to_string()], &[method]).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method}: {error}: {text}"))
}

fn both_protocols_are_readable(stage: &Stage) {
    let of = |url: &str| json!({ "node": { "id": CALLER }, "type_url": url });
    let delta = ask(stage, &format!("{ADS}/DeltaAggregatedResources"), &of(CLUSTER));
    let cart = delta["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["resource"]["name"] == "http:cart.shop.aether.internal");
    let cart = &cart.unwrap()["resource"];
    assert_eq!((&cart["@type"], &cart["type"]), (&json!(CLUSTER), &json!("EDS")));
    let options = &cart["typedExtensionProtocolOptions"];
    let options = &options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"];
    assert!(options["@type"].is_string(), "an Any in an Any is readable too: {cart:#}");

    let sotw = ask(stage, &format!("{ADS}/StreamAggregatedResources"), &of(LISTENER));
    let listener = &sotw["resources"][0];
    assert_eq!(
        (&listener["@type"], &listener["name"]),
        (&json!(LISTENER), &json!("capture_shop_caller"))
    );
    let text = listener.to_string();
    assert!(text.contains("HttpConnectionManager") && text.contains("cap_http.shop"), "{text}");
}

/// What CSDS says of a node: by type and name, the status, and the words of a refusal.
fn csds(stage: &Stage, node: &str) -> Vec<(String, String, String, String)> {
    let request = json!({ "node_matchers": [{ "node_id": { "exact": node } }] });
    let said = ask(stage, &format!("{CSDS}/FetchClientStatus"), &request);
    let [one] = said["config"].as_array().unwrap().as_slice() else { panic!("{said:#}") };
    assert_eq!(one["node"]["id"], node);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let configs = one["genericXdsConfigs"].as_array().unwrap().iter();
    let config = |config: &Value| {
        let kind = word(&config["typeUrl"]);
        let kind = kind.rsplit('.').next().unwrap().to_owned();
        assert_eq!(config["xdsConfig"]["@type"], config["typeUrl"], "{config:#}");
        let words = word(&config["errorState"]["details"]);
        (kind, word(&config["name"]), word(&config["configStatus"]), words)
    };
    configs.map(config).collect()
}

fn csds_tells_what_each_proxy_has(stage: &Stage) {
    let caller = csds(stage, CALLER);
    assert!(caller.iter().all(|(_, _, status, _)| status == "SYNCED"), "{caller:#?}");
    for (kind, name) in [
        ("Cluster", "http:cart.shop.aether.internal"),
        ("ClusterLoadAssignment", "shop/cart:80"),
        ("Listener", "capture_shop_caller"),
        ("RouteConfiguration", "cap_http.shop"),
        ("VirtualHost", "cap_http.shop/cart.shop"),
    ] {
        assert!(
            caller.iter().any(|one| one.0 == kind && one.1 == name),
            "{kind} {name}: {caller:#?}"
        );
    }
    let refuser = csds(stage, REFUSER);
    let refused: Vec<_> = refuser.iter().filter(|one| one.2 != "SYNCED").collect();
    let [(kind, name, status, words)] = refused.as_slice() else { panic!("{refuser:#?}") };
    assert_eq!(
        (kind.as_str(), name.as_str(), status.as_str()),
        ("Listener", "capture_shop_refuser", "ERROR")
    );
    assert!(words.contains("127.0.0.1:18001") && words.contains("in use"), "{words}");
    // Of everybody, in a stream, without contents.
    let all = ask(
        stage,
        &format!("{CSDS}/StreamClientStatus"),
        &json!({ "exclude_resource_contents": true }),
    );
    let nodes: Vec<_> =
        all["config"].as_array().unwrap().iter().map(|one| one["node"]["id"].clone()).collect();
    assert_eq!(nodes, [CALLER, REFUSER]);
    assert!(!all.to_string().contains("xdsConfig"), "{all:#}");
    let regex = json!({ "node_matchers": [{ "node_id": { "safe_regex": { "regex": ".*" } } }] });
    let method = format!("{CSDS}/FetchClientStatus");
    let error = stage.grpcurl(&["-d", &regex.to_string()], &[&method]).unwrap_err().to_string();
    assert!(error.contains("InvalidArgument") && error.contains("exact, prefix"), "{error}");
}

async fn status_has_a_line_for_each_proxy(stage: &Stage) {
    let (code, text, error) = stage.aether(&["status"]).unwrap();
    assert_eq!((code, error.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let [head, caller, refuser, empty, sum] = lines.as_slice() else { panic!("{text}") };
    assert_eq!(head.join(" "), "NODE ADDRESS SINCE CDS EDS LDS RDS VHDS");
    assert_eq!(
        (caller[0], caller[3..].join(" ").as_str()),
        (CALLER, "synced synced synced synced synced")
    );
    assert!(caller[1].starts_with("unix:pid="), "{text}");
    assert!(caller[2].ends_with('s'), "{text}");
    assert_eq!((refuser[0], refuser[5], refuser[8]), (REFUSER, "refused", "LDS:"));
    let words = "Error adding/updating listener(s) capture_shop_refuser: cannot bind '127.0.0.1:18001': Address already in use";
    assert!(text.contains(words), "{text}");
    assert!(empty.is_empty());
    assert!(
        sum.join(" ").starts_with("2 streams, 1 refusing, 0 pending, 0 waiting; snapshot "),
        "{text}"
    );

    let (code, json, _) = stage.aether(&["status", "--json", "--admin", "127.0.0.1:8080"]).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 0);
    let of = &json["streams"][1]["types"]["LDS"];
    assert_eq!(
        (&of["state"], &of["refused"]["names"]),
        (&json!("refused"), &json!(["capture_shop_refuser"]))
    );
    assert_eq!(json["streams"][0]["standing"], "served");

    let (code, _, error) = stage.aether(&["status", "--admin", "http://127.0.0.1:9"]).unwrap();
    assert_eq!(code, 2);
    assert!(
        error.contains("does `aether serve` run there") && error.contains("refused"),
        "{error}"
    );
    let (address, _other) = stage.stranger().await.unwrap();
    let (code, _, error) = stage.aether(&["status", "--admin", &address]).unwrap();
    assert_eq!(code, 2);
    assert!(error.contains("is this the --admin-address of an `aether serve`"), "{error}");
}

async fn pages_are_shown(stage: &Stage) {
    let (status, snapshot) = stage.page("/snapshot").await.unwrap();
    assert_eq!(status, 200);
    let snapshot: Value = serde_json::from_str(&snapshot).unwrap();
    assert!(snapshot["generation"].as_u64().unwrap() >= 1, "{snapshot:#}");
    assert_eq!(
        (&snapshot["nodes"], &snapshot["types"]["LDS"]["resources"]),
        (&json!(2), &json!(2))
    );
    assert!(snapshot["types"]["CDS"]["bytes"].as_u64().unwrap() > 100, "{snapshot:#}");

    let cart = "http:cart.shop.aether.internal";
    let (_, one) =
        stage.page(&format!("/snapshot?type=CDS&node={CALLER}&name={cart}")).await.unwrap();
    let one: Value = serde_json::from_str(&one).unwrap();
    let rendered = stage.rendered().unwrap();
    let clusters = rendered["clusters"].as_array().unwrap();
    let expected = clusters.iter().find(|cluster| cluster["name"] == cart).unwrap();
    assert_eq!(&one["resource"], expected, "as `render` prints it");

    for (path, status, words) in [
        ("/snapshot?type=CDS&name=nothing", 404, "no CDS resource nothing"),
        ("/snapshot?type=nothing", 400, "write one of CDS, EDS"),
        ("/", 200, "/nodes"),
    ] {
        let (found, text) = stage.page(path).await.unwrap();
        assert_eq!(found, status, "{path}: {text}");
        assert!(text.contains(words), "{path}: {text}");
    }
}

async fn latencies_are_measured(stage: &Stage) {
    stage.changes().unwrap();
    it::eventually("every metric", SOON, || async {
        let (_, text) = stage.page("/metrics").await?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<f64>().ok()).unwrap_or(-1.0)
        };
        for (name, least) in [
            ("aether_xds_change_to_push_seconds_count{type=\"EDS\"}", 2.0),
            ("aether_xds_change_to_ack_seconds_count{type=\"EDS\"}", 2.0),
            ("aether_xds_responses_total{type=\"EDS\",reason=\"change\"}", 2.0),
            ("aether_xds_responses_total{type=\"LDS\",reason=\"first\"}", 2.0),
            ("aether_xds_streams_refusing{type=\"LDS\"}", 1.0),
            ("aether_xds_streams", 2.0),
            ("aether_snapshot_resources{type=\"LDS\"}", 2.0),
            ("aether_snapshot_bytes{type=\"CDS\"}", 100.0),
            ("aether_snapshot_generation", 1.0),
            ("aether_quarantined_objects", 1.0),
        ] {
            anyhow::ensure!(value(name) >= least, "{name} is {} in:\n{text}", value(name));
        }
        anyhow::ensure!(value("aether_quarantined_objects") < 1.5, "one object is wrong");
        Ok(())
    })
    .await
    .unwrap();
}
