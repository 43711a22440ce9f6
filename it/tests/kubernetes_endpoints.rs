//! The rules of endpoints, on objects that the real controllers made: Deployments whose pods fake kubelets run, and
//! the EndpointSlices of the real controller.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::cluster::{Cluster, FakeNode, Options};
use it::delta::Stream;
use it::eventually;
use it::objects::Objects;
use it::plane::Plane;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(1);

/// Two zones of one region and a third of another; the caller is on the first node.
const NODES: [(&str, &str, &str); 4] = [
    ("node-a", "zone-a", "east"),
    ("node-a2", "zone-a", "east"),
    ("node-b", "zone-b", "east"),
    ("node-c", "zone-c", "west"),
];

struct Stage {
    stream: Stream,
    plane: Plane,
    objects: Objects,
    cluster: Cluster,
}

impl Stage {
    async fn new(options: Options) -> Result<Self> {
        let cluster = Cluster::start(options).await?;
        let objects = Objects::new(cluster.client().await?);
        objects.put(&json!({ "kind": "Namespace", "metadata": { "name": "shop" } })).await?;
        cluster.wait_for_namespace("shop").await?;
        objects.put(&pod("caller", "node-a", &json!({}))).await?;
        let plane = Plane::start(&cluster.kubeconfig(&cluster.admin())?, &[])?;
        plane.says(&["xDS on a Unix socket"], SOON).await?;
        plane.readyz(200, &["source: ready"], SOON).await?;
        let stream = Stream::open(plane.socket(), "pod/shop/caller").await?;
        Ok(Self { stream, plane, objects, cluster })
    }

    /// Waits until an assignment is this, in any order.
    async fn has(&self, assignment: &str, mut expected: Vec<String>) -> Result<()> {
        expected.sort();
        let is = |held: &it::delta::Held| {
            let mut found = held.endpoints(assignment).unwrap_or_default();
            found.sort();
            found == expected
        };
        let waited = self.stream.until(assignment, SOON, is).await;
        waited.map(drop).map_err(|_| {
            let found = self.stream.now().endpoints(assignment);
            anyhow::anyhow!("{assignment} is {found:#?} and not {expected:#?}")
        })
    }

    /// A Deployment with one pod on each of these nodes, and its running pods by node.
    async fn deploy(
        &self,
        app: &str,
        on: &[&str],
        template: Value,
    ) -> Result<BTreeMap<String, Pod>> {
        for node in on {
            let name = format!("{app}-{node}");
            let mut spec = json!({ "containers": [{ "name": "app", "image": "app" }], "nodeSelector": { "kubernetes.io/hostname": node } });
            merge(&mut spec, &template["spec"]);
            let mut meta =
                json!({ "labels": { "app": app, "one": name, "aether.io/managed": "true" } });
            merge(&mut meta, &template["metadata"]);
            let deployment = json!({
                "kind": "Deployment",
                "metadata": { "name": name, "namespace": "shop" },
                "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": { "one": name } },
                    "template": { "metadata": meta, "spec": spec },
                },
            });
            self.objects.put(&deployment).await?;
        }
        let pods = self.cluster.wait_for_pods("shop", &format!("app={app}"), on.len()).await?;
        let of_node = pods.into_iter().map(|pod| {
            let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
            (node, pod)
        });
        Ok(of_node.collect())
    }

    async fn service(&self, name: &str, spec: Value) -> Result<()> {
        let mut object = json!({
            "kind": "Service",
            "metadata": { "name": name, "namespace": "shop", "labels": { "aether.io/mesh-service": "true" } },
            "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080, "appProtocol": "http" }] },
        });
        merge(&mut object["spec"], &spec);
        self.objects.put(&object).await
    }

    /// Sets a pod's Ready condition, as its kubelet would.
    async fn ready(&self, pod: &Pod, ready: bool) -> Result<()> {
        let status = if ready { "True" } else { "False" };
        let change = json!({
            "kind": "Pod", "metadata": { "name": pod.metadata.name, "namespace": "shop" },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        });
        self.objects.merge_status(&change).await.map(drop)
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into.as_object_mut(), from.as_object()) {
        (Some(into), Some(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        _ if from.is_null() => {}
        _ => into.clone_from(from),
    }
}

/// A managed pod on a node; this is laid over its metadata.
fn pod(name: &str, node: &str, metadata: &Value) -> Value {
    let mut object = json!({
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "shop", "labels": { "aether.io/managed": "true" } },
        "spec": { "nodeName": node, "containers": [{ "name": "app", "image": "app" }] },
    });
    merge(&mut object["metadata"], metadata);
    object
}

fn ip(pod: &Pod) -> String {
    pod.status.as_ref().unwrap().pod_ip.clone().unwrap()
}

/// An endpoint in the words of the stream.
fn line(pod: &Pod, port: u16, weight: u32, priority: u32) -> String {
    let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
    let zone = NODES.into_iter().find(|(name, ..)| *name == node).map_or("", |(_, zone, _)| zone);
    format!("{}:{port} HEALTHY weight {weight} zone {zone:?} priority {priority}", ip(pod))
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_those_of_the_real_controllers() -> Result<()> {
    let nodes = NODES.map(|(name, zone, region)| {
        let (name, zone, region) = (name.to_owned(), zone.to_owned(), region.to_owned());
        FakeNode { name, zone, region }
    });
    let stage = Stage::new(Options::whole(nodes).dual_stack()).await?;
    readiness_and_zones(&stage).await.context("readiness and zones")?;
    one_family_of_two(&stage).await.context("dual stack")?;
    ports_by_name(&stage).await.context("ports by name")?;
    the_callers_node_alone(&stage).await.context("Local")?;
    registry(&stage).await.context("registry")?;
    by_hand(&stage).await.context("slices by hand")?;
    a_node_that_goes(&stage).await.context("a node that goes")?;
    let panicked = stage.plane.lines(&["panicked"]);
    ensure!(panicked.is_empty(), "{panicked:?}");
    Ok(())
}

async fn readiness_and_zones(stage: &Stage) -> Result<()> {
    let nodes = ["node-a", "node-b", "node-c"];
    let weight = json!({ "metadata": { "annotations": { "endpoint.aether.io/weight": "7" } } });
    let pods = stage.deploy("web", &nodes, weight).await?;
    stage.service("web", json!({ "selector": { "app": "web" } })).await?;
    let of = |fit: [(&str, u32); 3]| -> Vec<_> {
        fit.iter().map(|(node, priority)| line(&pods[*node], 8080, 7, *priority)).collect()
    };
    let all = of([("node-a", 0), ("node-b", 1), ("node-c", 2)]);
    stage.has("shop/web:80", all.clone()).await?;
    // One that is not ready is left out, and its priority with it: there is no gap.
    stage.ready(&pods["node-b"], false).await?;
    let two = vec![line(&pods["node-a"], 8080, 7, 0), line(&pods["node-c"], 8080, 7, 1)];
    stage.has("shop/web:80", two).await?;
    stage.ready(&pods["node-b"], true).await?;
    stage.has("shop/web:80", all).await?;
    // None: an empty assignment, not a removed one.
    for node in nodes {
        let scale = json!({ "kind": "Deployment", "metadata": { "name": format!("web-{node}"), "namespace": "shop" }, "spec": { "replicas": 0 } });
        stage.objects.merge(&scale).await?;
    }
    stage.has("shop/web:80", Vec::new()).await?;
    ensure!(stage.stream.now().endpoints("shop/web:80").is_some());
    Ok(())
}

async fn one_family_of_two(stage: &Stage) -> Result<()> {
    let pods = stage.deploy("dual", &["node-a"], json!({})).await?;
    let pod = &pods["node-a"];
    ensure!(pod.status.as_ref().unwrap().pod_ips.as_ref().unwrap().len() == 2);
    let dual = json!({ "selector": { "app": "dual" }, "ipFamilyPolicy": "RequireDualStack" });
    stage.service("dual", dual).await?;
    stage.has("shop/dual:80", vec![line(pod, 8080, 1, 0)]).await?;
    let six = json!({ "selector": { "app": "dual" }, "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack" });
    stage.service("six", six).await?;
    let v6 = pod.status.as_ref().unwrap().pod_ips.as_ref().unwrap()[1].ip.clone();
    let expected = format!("{v6}:8080 HEALTHY weight 1 zone \"zone-a\" priority 0");
    stage.has("shop/six:80", vec![expected]).await
}

async fn ports_by_name(stage: &Stage) -> Result<()> {
    let ports = |number: u16| json!([{ "name": "app", "image": "app", "ports": [{ "name": "web", "containerPort": number }] }]);
    let old = json!({ "spec": { "containers": ports(8080) } });
    let new = json!({ "spec": { "containers": ports(9090) } });
    let mut pods = stage.deploy("named", &["node-a"], old).await?;
    pods.extend(named_other(stage, new).await?);
    let spec = json!({ "selector": { "app": "named" }, "ports": [
        { "name": "http", "port": 80, "targetPort": "web", "appProtocol": "http" },
        { "name": "fixed", "port": 81, "targetPort": 7000, "appProtocol": "redis" },
    ] });
    stage.service("named", spec).await?;
    let expected = vec![line(&pods["node-a"], 8080, 1, 0), line(&pods["node-b"], 9090, 1, 1)];
    stage.has("shop/named:80", expected).await?;
    let expected = vec![line(&pods["node-a"], 7000, 1, 0), line(&pods["node-b"], 7000, 1, 1)];
    stage.has("shop/named:81", expected).await
}

/// A second version of the same app on another node, whose port of the name is another.
async fn named_other(stage: &Stage, template: Value) -> Result<BTreeMap<String, Pod>> {
    let mut deployment = json!({
        "kind": "Deployment",
        "metadata": { "name": "named-2", "namespace": "shop" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "one": "named-2" } },
            "template": {
                "metadata": { "labels": { "app": "named", "one": "named-2", "aether.io/managed": "true" } },
                "spec": { "nodeSelector": { "kubernetes.io/hostname": "node-b" } },
            },
        },
    });
    merge(&mut deployment["spec"]["template"], &template);
    stage.objects.put(&deployment).await?;
    let pods = stage.cluster.wait_for_pods("shop", "one=named-2", 1).await?;
    Ok(pods.into_iter().map(|pod| ("node-b".to_owned(), pod)).collect())
}

async fn the_callers_node_alone(stage: &Stage) -> Result<()> {
    let pods = stage.deploy("local", &["node-a", "node-a2", "node-b"], json!({})).await?;
    let spec = json!({ "selector": { "app": "local" }, "internalTrafficPolicy": "Local" });
    stage.service("local", spec).await?;
    stage.has("shop/local:80", vec![line(&pods["node-a"], 8080, 1, 0)]).await?;
    stage.ready(&pods["node-a"], false).await?;
    stage.has("shop/local:80", Vec::new()).await
}

/// A fake kubelet removes its pods at once; so here there is none, and we say how the pods are.
#[tokio::test(flavor = "multi_thread")]
async fn what_serves_while_it_goes_is_better_than_nothing() -> Result<()> {
    let stage = Stage::new(Options::controlled()).await?;
    let (node, zone, region) = NODES[0];
    let labels =
        json!({ "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region });
    stage
        .objects
        .put(&json!({ "kind": "Node", "metadata": { "name": node, "labels": labels } }))
        .await?;
    let going = |name: &str| pod(name, node, &json!({ "labels": { "app": "going" } }));
    let mut lines = Vec::new();
    for (name, address) in [("going-1", "10.244.200.1"), ("going-2", "10.244.200.2")] {
        stage.objects.put(&going(name)).await?;
        let running = json!({
            "kind": "Pod", "metadata": { "name": name, "namespace": "shop" },
            "status": {
                "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }],
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        stage.objects.merge_status(&running).await?;
        lines.push(format!("{address}:8080 HEALTHY weight 1 zone \"zone-a\" priority 0"));
    }
    stage.service("going", json!({ "selector": { "app": "going" } })).await?;
    stage.has("shop/going:80", lines.clone()).await?;
    // One goes, slowly: the other is ready, and enough.
    let delete = |name: &'static str| ["-n", "shop", "delete", "pod", name, "--wait=false"];
    stage.cluster.kubectl(&delete("going-1"), "").await?;
    stage.has("shop/going:80", vec![lines[1].clone()]).await?;
    // Both go: a drain must not be a failure of requests.
    stage.cluster.kubectl(&delete("going-2"), "").await?;
    stage.has("shop/going:80", lines).await?;
    for name in ["going-1", "going-2"] {
        stage.objects.delete(&going(name)).await?;
    }
    stage.has("shop/going:80", Vec::new()).await
}

async fn registry(stage: &Stage) -> Result<()> {
    let account =
        json!({ "kind": "ServiceAccount", "metadata": { "name": "ledger", "namespace": "shop" } });
    stage.objects.put(&account).await?;
    let as_ledger = json!({ "spec": { "serviceAccountName": "ledger" } });
    let pods = stage.deploy("ledger", &["node-a"], as_ledger.clone()).await?;
    // Those are none: one of another account, one that is not in the mesh, one on its node's network, one of `default`.
    let mut host = as_ledger.clone();
    host["spec"]["hostNetwork"] = true.into();
    stage.deploy("host", &["node-a"], host).await?;
    let mut out = as_ledger.clone();
    out["metadata"] = json!({ "labels": { "aether.io/managed": "false" } });
    stage.deploy("out", &["node-a"], out).await?;
    stage.deploy("other", &["node-a"], json!({})).await?;
    let mut own = as_ledger;
    own["metadata"] = json!({ "annotations": { "endpoint.aether.io/port": "9999", "endpoint.aether.io/weight": "3" } });
    let own = stage.deploy("own", &["node-b"], own).await?;
    let generated = |name: &str| {
        json!({
            "kind": "Service",
            "metadata": {
                "name": name, "namespace": "shop", "labels": { "aether.io/mesh-service": "true" },
                "annotations": { "aether.io/port": "7777", "aether.io/app-protocol": "http" },
            },
            "spec": { "ports": [{ "name": "mesh", "port": 18081 }] },
        })
    };
    stage.objects.put(&generated("ledger")).await?;
    let expected = vec![line(&pods["node-a"], 7777, 1, 0), line(&own["node-b"], 9999, 3, 1)];
    stage.has("shop/ledger:18081", expected.clone()).await?;
    stage.ready(&pods["node-a"], false).await?;
    // Without the nearer one, the farther one is the nearest.
    stage.has("shop/ledger:18081", vec![line(&own["node-b"], 9999, 3, 0)]).await?;
    stage.objects.put(&generated("default")).await?;
    stage.has("shop/default:18081", Vec::new()).await
}

async fn by_hand(stage: &Stage) -> Result<()> {
    stage.service("hand", json!({})).await?;
    let slice = |name: &str, endpoints: Value| {
        json!({
            "kind": "EndpointSlice",
            "metadata": { "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": "hand" } },
            "addressType": "IPv4", "ports": [{ "name": "http", "port": 8080 }], "endpoints": endpoints,
        })
    };
    // The first address counts, null means ready, and of two slices that name one address the ready one.
    let first = json!([
        { "addresses": ["10.244.201.1", "10.244.201.9"], "zone": "zone-b" },
        { "addresses": ["10.244.201.2"], "conditions": { "ready": false } },
    ]);
    let second = json!([
        { "addresses": ["10.244.201.2"], "nodeName": "node-a2" },
        { "addresses": ["10.244.201.3"], "nodeName": "nowhere", "zone": "zone-c" },
    ]);
    stage.objects.put(&slice("hand-1", first)).await?;
    stage.objects.put(&slice("hand-2", second)).await?;
    let expected = vec![
        "10.244.201.1:8080 HEALTHY weight 1 zone \"zone-b\" priority 1".to_owned(),
        "10.244.201.2:8080 HEALTHY weight 1 zone \"zone-a\" priority 0".to_owned(),
        "10.244.201.3:8080 HEALTHY weight 1 zone \"zone-c\" priority 2".to_owned(),
    ];
    stage.has("shop/hand:80", expected).await
}

async fn a_node_that_goes(stage: &Stage) -> Result<()> {
    let pods = stage.deploy("stays", &["node-a", "node-c"], json!({})).await?;
    stage.service("stays", json!({ "selector": { "app": "stays" } })).await?;
    let expected = vec![line(&pods["node-a"], 8080, 1, 0), line(&pods["node-c"], 8080, 1, 1)];
    stage.has("shop/stays:80", expected.clone()).await?;
    stage.cluster.remove_node("node-c").await?;
    let gone = eventually("the node is gone", SOON, || async {
        let nodes = stage.plane.metric("aether_source_objects{kind=\"Node\"}").await?;
        ensure!(nodes == Some(3.0), "{nodes:?}");
        Ok(())
    });
    gone.await?;
    // The slice's own zone keeps the endpoint in its place; it is not lost.
    let held = stage.stream.now().endpoints("shop/stays:80").context("it is there")?;
    let kept = held
        .iter()
        .any(|one| one.starts_with(&ip(&pods["node-c"])) && one.contains("zone \"zone-c\""));
    ensure!(kept, "{held:#?}");
    Ok(())
}
