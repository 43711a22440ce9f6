//! The generator of mesh Services against a real API server: what it makes, what it puts right, what it removes, and
//! that it never writes what it did not make.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod first;
mod histories;
mod stage;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::delta::Stream;
use serde_json::{Value, json};

use stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_gets_a_service_that_proxies_reach() -> Result<()> {
    let stage = Stage::new().await?;
    let says = json!({ "endpoint.aether.io/port": "9000", "endpoint.aether.io/protocol": "grpc" });
    stage.runs("web-0", "web", &says).await?;
    let service = stage.service("web").await?;
    ensure!(
        service["metadata"]["labels"] == json!({ "aether.io/mesh-service": "true" }),
        "{service}"
    );
    let annotations = json!({
        "aether.io/service": "web",
        "aether.io/port": "9000",
        "aether.io/app-protocol": "grpc",
        "aether.io/generated-for": "shop/web",
    });
    ensure!(service["metadata"]["annotations"] == annotations, "{service}");
    let spec = &service["spec"];
    ensure!(spec["type"] == "ClusterIP" && spec["ipFamilyPolicy"] == "PreferDualStack", "{spec}");
    ensure!(spec["selector"].is_null(), "{spec}");
    let ports = spec["ports"].as_array().context("ports")?;
    ensure!(ports.len() == 1 && ports[0]["name"] == "mesh" && ports[0]["port"] == 18081, "{spec}");
    let stream = Stream::open(stage.plane.socket(), "pod/shop/web-0").await?;
    let has = |held: &it::delta::Held| {
        held.endpoints("shop/web:18081")
            .is_some_and(|all| all.iter().any(|one| one.contains(":9000")))
    };
    stream.until("the endpoint of the generated Service", SOON, has).await?;
    // It converges to no write at all.
    let version = stage.service("web").await?["metadata"]["resourceVersion"].clone();
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(stage.service("web").await?["metadata"]["resourceVersion"] == version);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_put_right_and_the_address_and_what_users_added_stay() -> Result<()> {
    let stage = Stage::new().await?;
    stage.runs("web-0", "web", &json!({})).await?;
    let before = stage.service("web").await?;
    let drifts = [
        json!({ "metadata": { "annotations": { "aether.io/port": "nonsense", "aether.io/service": "Other" } } }),
        json!({ "metadata": { "annotations": { "aether.io/app-protocol": "redis" } } }),
        json!({ "spec": { "selector": { "app": "x" } } }),
        json!({ "spec": { "ports": [{ "name": "web", "port": 80 }] } }),
        json!({ "spec": { "type": "NodePort" } }),
        json!({ "spec": { "type": "LoadBalancer", "externalTrafficPolicy": "Local" } }),
        json!({ "spec": { "ipFamilyPolicy": "SingleStack" } }),
    ];
    for mut drift in drifts {
        drift["kind"] = "Service".into();
        drift["metadata"]["name"] = "web".into();
        drift["metadata"]["namespace"] = "shop".into();
        drift["metadata"]["labels"]["team"] = "mesh".into();
        stage.objects.merge(&drift).await.with_context(|| drift.to_string())?;
        stage
            .until(&format!("{drift} put right"), || async {
                let now = stage.service("web").await?;
                for path in [
                    "/metadata/annotations",
                    "/spec/ports",
                    "/spec/type",
                    "/spec/clusterIP",
                    "/spec/selector",
                    "/spec/ipFamilyPolicy",
                    "/metadata/uid",
                ] {
                    ensure!(now.pointer(path) == before.pointer(path), "{path}: {now}");
                }
                ensure!(now["metadata"]["labels"]["team"] == "mesh", "{now}");
                Ok(())
            })
            .await?;
    }
    // One that has no address any more gets one.
    let external = json!({
        "kind": "Service",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "type": "ExternalName", "externalName": "db.example.com", "clusterIP": null, "clusterIPs": null },
    });
    stage.objects.merge(&external).await?;
    stage
        .until("an address again", || async {
            let now = stage.service("web").await?;
            ensure!(
                now["spec"]["type"] == "ClusterIP" && now["spec"]["clusterIP"].is_string(),
                "{now}"
            );
            ensure!(now["spec"]["externalName"].is_null(), "{now}");
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_service_is_never_written_whatever_it_looks_like() -> Result<()> {
    let stage = Stage::new().await?;
    let copied = |name: &str, labelled: bool| {
        json!({
            "kind": "Service",
            "metadata": {
                "name": name, "namespace": "shop",
                "labels": { "aether.io/mesh-service": labelled.to_string() },
                "annotations": { "aether.io/generated-for": format!("shop/{name}"), "aether.io/port": "1" },
            },
            "spec": { "ports": [{ "port": 80 }] },
        })
    };
    for (name, labelled) in [("copied", true), ("bare", false)] {
        stage.objects.create(&copied(name, labelled)).await?;
        stage.runs(&format!("{name}-0"), name, &json!({})).await?;
    }
    let before = [stage.service("copied").await?, stage.service("bare").await?];
    let attempts = "aether_generator_attempts_total{operation=\"create\",outcome=\"taken\"}";
    stage
        .until("it has seen that the name is taken", || async {
            ensure!(stage.plane.metric(attempts).await?.is_some_and(|count| count > 0.0));
            Ok(())
        })
        .await?;
    // It is told on the ServiceAccount whose pods have no Service.
    stage
        .until("the event", || async {
            let told = stage
                .cluster
                .kubectl(&["describe", "serviceaccount", "bare", "-n", "shop"], "")
                .await?;
            ensure!(told.contains("NotGenerated") && told.contains("exists already"), "{told}");
            Ok(())
        })
        .await?;
    ensure!([stage.service("copied").await?, stage.service("bare").await?] == before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_to_zero_keeps_it_and_the_end_of_its_account_does_not() -> Result<()> {
    let stage = Stage::new().await?;
    stage.runs("web-0", "web", &json!({})).await?;
    stage.runs("cart-0", "cart", &json!({})).await?;
    let web = stage.service("web").await?;
    stage.service("cart").await?;
    stage.gone("Pod", "web-0").await?;
    stage.gone("Pod", "cart-0").await?;
    stage.gone("ServiceAccount", "cart").await?;
    let begun = std::time::Instant::now();
    let cart = json!({ "kind": "Service", "metadata": { "name": "cart", "namespace": "shop" } });
    while stage.objects.get(&cart).await.is_ok() {
        ensure!(begun.elapsed() < Duration::from_secs(90), "{}", stage.plane.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    ensure!(begun.elapsed() > Duration::from_secs(58), "after {:?}", begun.elapsed());
    ensure!(stage.service("web").await? == web, "a scale to zero");
    stage.runs("web-1", "web", &json!({})).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let now: Value = stage.service("web").await?;
    ensure!(now == web, "and back: {now}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_where_nothing_is_touched() -> Result<()> {
    let stage = Stage::new().await?;
    for namespace in ["kube-system", "spire-system", "aether-system"] {
        stage.runs_in(namespace, "web-0", "web", &json!({})).await?;
    }
    stage.runs("web-0", "web", &json!({})).await?;
    stage.service("web").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all = stage.cluster.kubectl(&["get", "services", "-A", "-o", "name"], "").await?;
    ensure!(all.matches("/web").count() == 1, "{all}");
    Ok(())
}
