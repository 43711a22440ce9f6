//! Bad days: connected proxies keep all that they have, are sent nothing unless content differs, and soon afterwards
//! the source follows again.

use std::time::Duration;

use anyhow::{Result, ensure};
use it::cluster::Options;
use serde_json::json;

use crate::stage::{SOON, Stage, service, slice};

/// How long what is not to end at once lasts: 30 s or a minute with `AETHER_IT_FULL` set, else a tenth of it.
fn lasts(full: u64) -> Duration {
    match std::env::var_os("AETHER_IT_FULL") {
        Some(_) => Duration::from_secs(full),
        None => Duration::from_millis(full * 100),
    }
}

#[tokio::test]
async fn the_api_server_is_killed_and_started_again() -> Result<()> {
    let stage = Stage::new().await?;
    let before = stage.stream.responses();
    stage.cluster.stop_api_server()?;
    stage.plane.says(&["cannot be reached"], Duration::from_secs(5)).await?;
    stage.plane.readyz(200, &["source: ready, but", "what was known last is served"], SOON).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.cluster.start_api_server().await?;
    stage.plane.says(&["is reached again, after"], SOON).await?;
    stage.plane.readyz(200, &["source: ready\n"], SOON).await?;
    stage.untouched(before)?;
    stage.follows(21, Duration::from_secs(10)).await?;
    ensure!(stage.plane.lines(&["cannot be reached"]).len() == 1, "{}", stage.plane.log());
    Ok(())
}

#[tokio::test]
async fn what_changed_while_nobody_watched_comes_at_once_and_alone() -> Result<()> {
    let stage = Stage::new().await?;
    stage.objects.put(&service("old", json!({}), json!({}))).await?;
    stage.stream.until("old", SOON, |held| held.names("virtual host").len() == 3).await?;
    let before = stage.stream.quiet(Duration::from_millis(300), SOON).await?;
    // Away from us; for others it is there, and all that a watch could go on from is forgotten.
    stage.proxy.refuse().await;
    stage.proxy.cut();
    stage.objects.delete(&service("old", json!({}), json!({}))).await?;
    stage.objects.put(&service("new", json!({}), json!({}))).await?;
    stage.cluster.expire().await?;
    stage.untouched(before)?;
    stage.proxy.accept().await?;
    let wanted = |held: &it::delta::Held| {
        let hosts = held.names("virtual host");
        hosts.contains("cap_http.shop/new.shop") && !hosts.contains("cap_http.shop/old.shop")
    };
    stage.stream.until("the new one, and not the old", SOON, wanted).await?;
    let lists = stage.plane.metric("aether_source_lists_total{kind=\"Service\"}").await?;
    ensure!(lists == Some(2.0), "listed {lists:?} times");
    ensure!(stage.stream.now().endpoints("shop/cart:80").is_some_and(|all| all.len() == 2));
    Ok(())
}

#[tokio::test]
async fn every_watch_is_told_that_it_is_too_late() -> Result<()> {
    let stage = Stage::new().await?;
    let before = stage.stream.responses();
    for _ in 0..2 {
        // A change of something that does not concern us, so that the datastore moves on.
        let lease = json!({ "kind": "Lease", "metadata": { "name": "n1", "namespace": "shop" }, "spec": {} });
        stage.objects.put(&lease).await?;
        stage.objects.delete(&lease).await?;
        stage.cluster.expire().await?;
    }
    stage.plane.readyz(200, &["source: ready\n"], SOON).await?;
    stage.follows(22, Duration::from_secs(15)).await?;
    let after = stage.stream.quiet(Duration::from_millis(300), SOON).await?;
    ensure!(after == before + 1, "{} responses for one change", after - before);
    Ok(())
}

#[tokio::test]
async fn the_datastore_stands_still() -> Result<()> {
    let stage = Stage::new().await?;
    let before = stage.stream.responses();
    stage.cluster.pause_etcd()?;
    tokio::time::sleep(lasts(30)).await;
    stage.untouched(before)?;
    let (status, told) = stage.plane.get("/readyz").await?;
    ensure!(status.is_success(), "{told}");
    stage.cluster.resume_etcd()?;
    stage.cluster.wait_ready().await?;
    stage.follows(23, Duration::from_secs(15)).await
}

#[tokio::test]
async fn watches_are_cut_every_second() -> Result<()> {
    let stage = Stage::new().await?;
    let start = tokio::time::Instant::now();
    let mut octet = 30;
    while start.elapsed() < lasts(60) {
        stage.proxy.cut();
        stage.follows(octet, Duration::from_secs(5)).await?;
        octet += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let log = stage.plane.log();
    let loud = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR"));
    let loud: Vec<_> = loud.collect();
    ensure!(loud.len() <= 2, "{loud:#?}");
    ensure!(stage.stream.now().ended.is_none());
    let lists = stage.plane.metric("aether_source_lists_total{kind=\"Pod\"}").await?;
    ensure!(lists == Some(1.0), "a cut is no reason to list anew: {lists:?}");
    Ok(())
}

#[tokio::test]
async fn the_serving_certificate_is_replaced() -> Result<()> {
    let stage = Stage::new().await?;
    let before = stage.stream.responses();
    stage.cluster.replace_serving_certificate().await?;
    stage.proxy.cut();
    stage.untouched(before)?;
    stage.follows(24, SOON).await?;
    // The election may have begun to watch its lease at that very moment, and says so.
    let mut warned = stage.plane.lines(&["WARN"]);
    warned.retain(|line| !line.contains("aether::leader"));
    ensure!(warned.is_empty(), "{}", stage.plane.log());
    Ok(())
}

#[tokio::test]
async fn permissions_are_withdrawn_and_returned() -> Result<()> {
    let options = Options::bare().user("reader", &[]);
    let stage = Stage::with(options, &[]).await?;
    let reader = stage.cluster.user("reader")?;
    let binding = json!({
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "reader" },
        "subjects": [{ "kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io" }],
        "roleRef": { "kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io" },
    });
    stage.objects.put(&binding).await?;
    let proxy = it::cluster::Proxy::to(stage.cluster.address()).await?;
    let kubeconfig = stage.cluster.kubeconfig_at(&reader, proxy.address())?;
    let plane = it::plane::Plane::start(&kubeconfig, &[])?;
    plane.says(&["xDS on a Unix socket"], SOON).await?;
    plane.readyz(200, &["source: ready"], SOON).await?;
    let stream = it::delta::Stream::open(plane.socket(), crate::stage::CALLER).await?;
    let full = |held: &it::delta::Held| held.endpoints("shop/cart:80").is_some();
    stream.until("the configuration", SOON, full).await?;
    let before = stream.quiet(Duration::from_millis(300), SOON).await?;
    stage.objects.delete(&binding).await?;
    // A watch that is open is not judged anew; one that is begun is.
    proxy.cut();
    for (group, resource) in [("\"\"", "pods"), ("\"discovery.k8s.io\"", "endpointslices")] {
        let words = ["does not let us watch", resource, group, "grant the verb watch"];
        plane.says(&words, Duration::from_secs(5)).await?;
    }
    plane.readyz(200, &["source: ready, but", "watch nodes"], SOON).await?;
    let gauge = "aether_source_forbidden{verb=\"watch\",group=\"\",resource=\"services\"}";
    ensure!(plane.metric(gauge).await? == Some(1.0));
    ensure!(stream.responses() == before && stream.now().ended.is_none());
    stage.objects.put(&binding).await?;
    plane.says(&["we may watch pods", "again"], Duration::from_secs(10)).await?;
    plane.readyz(200, &["source: ready\n"], SOON).await?;
    stage.objects.put(&slice("cart-1", "cart", &["10.244.9.77"])).await?;
    let has = |held: &it::delta::Held| {
        held.endpoints("shop/cart:80").is_some_and(|all| all.iter().any(|one| one.contains(".77:")))
    };
    stream.until("a change", SOON, has).await?;
    ensure!(stream.responses() == before + 1);
    ensure!(plane.metric(gauge).await?.is_none_or(|value| value < 0.5));
    Ok(())
}

#[tokio::test]
#[ignore = "it takes the minute that it is about"]
async fn a_connection_to_nowhere_is_noticed() -> Result<()> {
    let stage = Stage::new().await?;
    stage.proxy.blackhole(true);
    // New ones lead somewhere again, those that are open do not.
    stage.plane.says(&["cannot be reached"], Duration::from_secs(75)).await?;
    stage.proxy.cut();
    stage.proxy.blackhole(false);
    stage.follows(25, SOON).await
}
