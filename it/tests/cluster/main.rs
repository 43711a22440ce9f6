//! The rig proves itself: a real API server with what belongs to it, and a network that breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod admission;
mod leftovers;
mod network;
mod webhook;

use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use it::cluster::{Cluster, FakeNode, Options};
use it::eventually;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use tokio::time::timeout;

const SOON: Duration = Duration::from_mins(1);

/// What some test here creates: a Deployment of three pods, and the Service before it.
const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web}]
";

fn config_map(name: &str) -> ConfigMap {
    let object = serde_json::json!({"metadata": {"name": name}, "data": {"a": "b"}});
    serde_json::from_value(object).unwrap()
}

/// Creates a ConfigMap and returns its resourceVersion.
async fn touch(client: &Client, name: &str) -> kube::Result<String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let made = maps.create(&PostParams::default(), &config_map(name)).await?;
    Ok(made.metadata.resource_version.unwrap())
}

/// The first event of a watch of ConfigMaps from this version, as the API server writes it.
async fn first_event(client: &Client, version: &str) -> kube::Result<serde_json::Value> {
    let path = format!("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion={version}");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let stream = client.request_stream(request).await?;
    let line = timeout(SOON, stream.lines().try_next()).await.unwrap();
    Ok(serde_json::from_str(&line.map_err(kube::Error::ReadEvents)?.unwrap()).unwrap())
}

fn said(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the API server: {other}"),
    }
}

#[tokio::test]
async fn a_deployment_runs_and_its_service_has_endpoints_with_zones() {
    let start = Instant::now();
    let nodes = ["a", "b", "c"].map(|zone| FakeNode::new(&format!("node-{zone}"), zone));
    let cluster = Cluster::start(Options::whole(nodes).dual_stack()).await.unwrap();
    println!("a whole cluster is up after {:?}", start.elapsed());
    assert_eq!(cluster.nodes().await.unwrap().len(), 3);

    let start = Instant::now();
    cluster.apply(SHOP).await.unwrap();
    let pods = cluster.wait_for_pods("shop", "app=web", 3).await.unwrap();
    println!("a Deployment of three runs after {:?}", start.elapsed());
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client().await.unwrap(), "shop");
    let found = eventually("slices", SOON, || async {
        let found = slices.list(&ListParams::default()).await?.items;
        let ready = |endpoint: &&k8s_openapi::api::discovery::v1::Endpoint| {
            endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
        };
        let count = found.iter().flat_map(|slice| &slice.endpoints).filter(ready).count();
        anyhow::ensure!(count == 3, "{count} endpoints are ready");
        Ok(found)
    });
    let found = found.await.unwrap();
    let mut zones = Vec::new();
    for endpoint in found.iter().flat_map(|slice| &slice.endpoints) {
        let address = &endpoint.addresses[0];
        let of_a_pod = |pod: &Pod| pod.status.as_ref().unwrap().pod_ip.as_ref() == Some(address);
        assert!(pods.iter().any(of_a_pod), "{address} is no pod's");
        assert!(address.starts_with("10.244."), "{address}");
        zones.extend(endpoint.zone.clone());
    }
    zones.sort();
    assert_eq!(zones, ["a", "b", "c"], "the scheduler spreads them");
    let both = pods[0].status.as_ref().unwrap().pod_ips.as_ref().unwrap().len();
    assert_eq!(both, 2, "a pod of a dual-stack cluster has two addresses");

    // What the controllers do goes on: fewer replicas, fewer pods.
    cluster.kubectl(&["-n", "shop", "scale", "deploy/web", "--replicas=1"], "").await.unwrap();
    cluster.wait_for_pods("shop", "app=web", 1).await.unwrap();

    let yaml = "{apiVersion: v1, kind: Service, metadata: {name: two, namespace: shop},
                 spec: {ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}}";
    cluster.apply(yaml).await.unwrap();
    let services: Api<Service> = Api::namespaced(cluster.client().await.unwrap(), "shop");
    let two = services.get("two").await.unwrap().spec.unwrap().cluster_ips.unwrap();
    assert!(two[0].starts_with("10.96.") && two[1].starts_with("fd00:10:96::"), "{two:?}");
}

#[tokio::test]
async fn whoever_has_no_permission_is_refused_until_they_have() {
    let options = Options::controlled().user("ann", &["shops"]);
    let cluster = Cluster::start(options).await.unwrap();
    cluster.kubectl(&["create", "serviceaccount", "reader"], "").await.unwrap();
    let reader = cluster.service_account("default", "reader").await.unwrap();
    let ann = cluster.user("ann").unwrap();
    assert!(cluster.user("bob").is_err());
    for who in [&reader, &ann] {
        let client = cluster.client_of(who).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client, "default");
        let refused = pods.list(&ListParams::default()).await.unwrap_err();
        assert!(refused.to_string().contains(&who.name), "{refused}");
        assert_eq!(said(refused), 403);
    }
    // Both by their own right: the ServiceAccount by its name, the user by her group.
    let role = ["create", "role", "reads", "--verb=list", "--resource=pods"];
    cluster.kubectl(&role, "").await.unwrap();
    let binding = ["--role=reads", "--serviceaccount=default:reader", "--group=shops"];
    let binding = [&["create", "rolebinding", "reads"][..], &binding[..]].concat();
    cluster.kubectl(&binding, "").await.unwrap();
    for who in [&reader, &ann] {
        let pods: Api<Pod> = Api::namespaced(cluster.client_of(who).await.unwrap(), "default");
        let ask = || async { Ok(pods.list(&ListParams::default()).await?) };
        assert!(eventually("the permission", SOON, ask).await.unwrap().items.is_empty());
        assert_eq!(said(pods.delete("x", &DeleteParams::default()).await.unwrap_err()), 403);
    }
    let done = cluster.kubectl_as(&ann, &["get", "secrets"], "").await.unwrap();
    assert!(!done.status.success() && String::from_utf8_lossy(&done.stderr).contains("Forbidden"));
    let error = cluster.apply("{apiVersion: v1, kind: Pod, metadata: {name: UPPER}}").await;
    assert!(error.unwrap_err().to_string().contains("UPPER"));
}

#[tokio::test]
async fn the_api_server_dies_and_comes_back_at_its_address_with_its_objects() {
    let start = Instant::now();
    let cluster = Cluster::start(Options::bare()).await.unwrap();
    println!("a bare cluster is up after {:?}", start.elapsed());
    let client = cluster.client().await.unwrap();
    touch(&client, "kept").await.unwrap();
    assert!(cluster.start_api_server().await.is_err(), "it runs");
    cluster.stop_api_server().unwrap();
    assert!(touch(&client, "nobody-there").await.is_err());
    let start = Instant::now();
    cluster.start_api_server().await.unwrap();
    println!("the API server is back after {:?}", start.elapsed());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    assert_eq!(maps.get("kept").await.unwrap().data.unwrap()["a"], "b");

    // Without its datastore it takes no change.
    cluster.pause_etcd().unwrap();
    let hung = timeout(Duration::from_secs(1), touch(&client, "hung")).await;
    assert!(!matches!(hung, Ok(Ok(_))), "etcd is not paused");
    cluster.resume_etcd().unwrap();
    eventually("etcd", SOON, || async { Ok(touch(&client, "goes-on").await?) }).await.unwrap();

    // A client that holds to the authority does not notice that the certificate is another.
    let start = Instant::now();
    cluster.replace_serving_certificate().await.unwrap();
    println!("a new serving certificate is presented after {:?}", start.elapsed());
    touch(&cluster.client().await.unwrap(), "renewed").await.unwrap();
}

#[tokio::test]
async fn what_began_before_the_history_expired_cannot_go_on() {
    let cluster = Cluster::start(Options::bare()).await.unwrap();
    let client = cluster.client().await.unwrap();
    let old = touch(&client, "one").await.unwrap();
    touch(&client, "two").await.unwrap();
    let event = first_event(&client, &old).await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&"ADDED".into(), &"two".into())
    );

    // A list in pages, whose second page is asked for too late.
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let page = maps.list(&ListParams::default().limit(1)).await.unwrap();
    let rest = ListParams::default().limit(1).continue_token(&page.metadata.continue_.unwrap());
    maps.list(&rest).await.unwrap();
    touch(&client, "three").await.unwrap();

    cluster.expire().await.unwrap();
    assert_eq!(said(maps.list(&rest).await.unwrap_err()), 410);
    let event = first_event(&client, &old).await;
    let code = match event {
        Ok(event) => event["object"]["code"].as_u64().unwrap(),
        Err(error) => u64::from(said(error)),
    };
    assert_eq!(code, 410);
}
