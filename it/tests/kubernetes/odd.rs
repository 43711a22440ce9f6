//! Objects that nobody expects.

use std::time::Duration;

use anyhow::{Result, ensure};
use envoy_types::pb::envoy::config::route::v3::VirtualHost;
use it::delta::Held;
use prost::Message;
use serde_json::{Value, json};

use crate::stage::{SOON, Stage, pod, service, slice};

fn has_host(name: &str) -> impl Fn(&Held) -> bool {
    let host = format!("cap_http.shop/{name}.shop");
    move |held: &Held| held.names("virtual host").contains(host.as_str())
}

/// The domains of a Service's virtual host.
fn domains(held: &Held, name: &str) -> Vec<String> {
    let bytes = held.bytes("virtual host", &format!("cap_http.shop/{name}.shop"));
    let host = bytes.and_then(|bytes| VirtualHost::decode(bytes).ok());
    host.map(|host| host.domains).unwrap_or_default()
}

fn lacks_host(name: &str) -> impl Fn(&Held) -> bool {
    let has = has_host(name);
    move |held: &Held| !has(held)
}

#[tokio::test]
async fn annotations_and_names_as_large_as_they_may_be() -> Result<()> {
    let stage = Stage::new().await?;
    let huge = "x".repeat(200 * 1024);
    let longest = "s".repeat(63);
    stage.objects.put(&service(&longest, json!({ "example.com/huge": huge }), json!({}))).await?;
    stage.stream.until("the longest name", SOON, has_host(&longest)).await?;
    let strange = json!({ "aether.io/service": huge.clone() });
    stage.objects.put(&service("strange", strange, json!({}))).await?;
    let line = stage.plane.says(&["InvalidValue", "Service shop/strange"], SOON).await?;
    ensure!(
        line.len() < 2000 && line.contains("204800 characters"),
        "{} bytes: {line:.300}",
        line.len()
    );
    let name = format!("{}.{}", "p".repeat(126), "q".repeat(126));
    let labels = json!({ "aether.io/managed": "true" });
    stage.objects.put(&pod(&name, labels, json!({ "config.aether.io/upstreams": huge }))).await?;
    stage.plane.says(&["InvalidValue", "aether.io/upstreams"], SOON).await?;
    stage.follows(41, SOON).await
}

#[tokio::test]
async fn a_service_changes_what_it_is() -> Result<()> {
    let stage = Stage::new().await?;
    let turning = |spec: Value| service("turning", json!({}), spec);
    stage.objects.create(&turning(json!({}))).await?;
    stage.stream.until("a ClusterIP", SOON, has_host("turning")).await?;
    let first = stage.objects.get(&turning(json!({}))).await?.data["spec"]["clusterIP"].clone();
    // The API server lets a Service become an ExternalName and back, and headless by a new one alone.
    let external = json!({
        "kind": "Service", "metadata": { "name": "turning", "namespace": "shop" },
        "spec": { "type": "ExternalName", "externalName": "db.example.com", "clusterIP": null, "clusterIPs": null },
    });
    stage.objects.merge(&external).await?;
    stage.stream.until("an ExternalName", SOON, lacks_host("turning")).await?;
    stage.plane.says(&["NotCaptured", "shop/turning", "db.example.com"], SOON).await?;
    let back = json!({
        "kind": "Service", "metadata": { "name": "turning", "namespace": "shop" },
        "spec": { "type": "ClusterIP", "externalName": null },
    });
    stage.objects.merge(&back).await?;
    stage.stream.until("a ClusterIP again", SOON, has_host("turning")).await?;
    stage.plane.says(&["resolved: NotCaptured", "shop/turning"], SOON).await?;
    for round in 0..3 {
        let headless = round % 2 == 0;
        stage.objects.delete(&turning(json!({}))).await?;
        let spec = if headless { json!({ "clusterIP": "None" }) } else { json!({}) };
        stage.objects.create(&turning(spec)).await?;
        let now = stage.objects.get(&turning(json!({}))).await?.data["spec"]["clusterIP"].clone();
        let address = now.as_str().unwrap().to_owned();
        let wanted = |held: &Held| {
            let domains = domains(held, "turning");
            let has = |domain: &str| domains.iter().any(|one| one == domain);
            // A headless one has no mesh name; another has its address among its domains.
            has("turning.shop.svc")
                && has("turning.shop.aether.internal") != headless
                && has(&address) != headless
        };
        stage.stream.until(&format!("round {round}"), SOON, wanted).await?;
    }
    ensure!(first.is_string());
    Ok(())
}

#[tokio::test]
async fn a_service_is_made_anew_within_a_second_with_another_address() -> Result<()> {
    let stage = Stage::new().await?;
    for round in 1..=10_u8 {
        let address = format!("10.96.77.{round}");
        let object = service("again", json!({}), json!({ "clusterIP": address }));
        if round > 1 {
            stage.objects.delete(&object).await?;
        }
        stage.objects.create(&object).await?;
        let old = format!("10.96.77.{}", round - 1);
        let wanted = |held: &Held| {
            let domains = domains(held, "again");
            domains.contains(&address) && !domains.contains(&old)
        };
        stage.stream.until(&format!("the address {address}"), SOON, wanted).await?;
    }
    Ok(())
}

#[tokio::test]
async fn ten_thousand_endpoints() -> Result<()> {
    let stage = Stage::new().await?;
    stage.objects.put(&service("wide", json!({}), json!({}))).await?;
    for part in 0..10_u32 {
        let addresses: Vec<_> = (0..1000_u32)
            .map(|n| std::net::Ipv4Addr::from_bits(0x0af0_0001 + part * 1000 + n).to_string())
            .collect();
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        stage.objects.put(&slice(&format!("wide-{part}"), "wide", &addresses)).await?;
    }
    let all = |held: &Held| held.endpoints("shop/wide:80").is_some_and(|all| all.len() == 10_000);
    stage.stream.until("10,000 endpoints", SOON, all).await?;
    let one_less: Vec<_> =
        (1..1000_u32).map(|n| std::net::Ipv4Addr::from_bits(0x0af0_0001 + n).to_string()).collect();
    let one_less: Vec<_> = one_less.iter().map(String::as_str).collect();
    stage.objects.put(&slice("wide-0", "wide", &one_less)).await?;
    let fewer = |held: &Held| held.endpoints("shop/wide:80").is_some_and(|all| all.len() == 9_999);
    stage.stream.until("one less", SOON, fewer).await.map(drop)
}

#[tokio::test]
async fn pods_without_addresses_nodes_without_labels_and_what_is_being_deleted_for_days()
-> Result<()> {
    let stage = Stage::new().await?;
    stage.objects.put(&json!({ "kind": "Node", "metadata": { "name": "bare" } })).await?;
    let labels = json!({ "aether.io/managed": "true" });
    let mut lost = pod("lost", labels, json!({}));
    lost["spec"]["nodeName"] = "bare".into();
    stage.objects.put(&lost).await?;
    // It has no address and no place, and its proxy is served all the same.
    let proxy = it::delta::Stream::open(stage.plane.socket(), "pod/shop/lost").await?;
    proxy.until("a listener", SOON, |held| !held.names("listener").is_empty()).await?;
    let mut doomed = service("doomed", json!({}), json!({}));
    doomed["metadata"]["finalizers"] = json!(["example.com/waits"]);
    stage.objects.put(&doomed).await?;
    stage.stream.until("it is there", SOON, has_host("doomed")).await?;
    stage.objects.delete(&doomed).await?;
    let at = stage.objects.get(&doomed).await?.metadata.deletion_timestamp;
    ensure!(at.is_some(), "it waits for its finalizer");
    // As long as it is there its ClusterIP is its own, and it is served.
    stage.follows(42, SOON).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    ensure!(has_host("doomed")(&stage.stream.now()));
    let free = json!({
        "kind": "Service", "metadata": { "name": "doomed", "namespace": "shop", "finalizers": [] },
    });
    stage.objects.merge(&free).await?;
    stage.stream.until("it is gone", SOON, lacks_host("doomed")).await.map(drop)
}
