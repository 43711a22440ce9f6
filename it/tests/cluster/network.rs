//! The network between a client and its API server, as a proxy breaks it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use it::cluster::{Cluster, End, Options, Proxy};
use it::eventually;
use it::net::{NODE_V4, Net};
use tokio::time::timeout;

use crate::{SOON, touch};

#[tokio::test]
async fn the_network_breaks_and_heals() {
    let cluster = Cluster::start(Options::bare()).await.unwrap();
    let proxy = Proxy::to(cluster.address()).await.unwrap();
    let client = cluster.client_at(&cluster.admin(), proxy.address()).await.unwrap();
    let short = |what: &'static str| {
        let client = client.clone();
        async move { timeout(Duration::from_millis(1500), touch(&client, what)).await }
    };
    short("first").await.unwrap().unwrap();
    assert!(proxy.accepted() >= 1 && proxy.open() >= 1);

    // Cut: a watch that runs ends, and whoever asks again is answered.
    let path = "/api/v1/configmaps?watch=1";
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let watch = client.request_stream(request).await.unwrap();
    let mut lines = watch.lines();
    assert!(timeout(SOON, lines.try_next()).await.unwrap().unwrap().is_some());
    proxy.cut();
    let end = async { while let Ok(Some(_)) = lines.try_next().await {} };
    timeout(SOON, end).await.expect("a watch outlived its connection");
    let before = proxy.accepted();
    eventually("anew", SOON, || async { Ok(touch(&client, "anew").await?) }).await.unwrap();
    assert!(proxy.accepted() > before);

    // Refused: what is open goes on, nothing new comes.
    proxy.refuse().await;
    short("goes-on").await.unwrap().unwrap();
    proxy.cut();
    eventually("closed", SOON, || async {
        anyhow::ensure!(proxy.open() == 0);
        Ok(())
    })
    .await
    .unwrap();
    assert!(short("refused").await.unwrap().is_err());
    proxy.accept().await.unwrap();
    short("taken").await.unwrap().unwrap();

    // Silent: no answer and no error; what was sent meanwhile arrives afterwards.
    proxy.blackhole(true);
    assert!(short("silent").await.is_err());
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { touch(&client, "late").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    proxy.blackhole(false);
    timeout(SOON, waiting).await.unwrap().unwrap().unwrap();

    // Slow: there and back.
    proxy.delay(Duration::from_millis(200));
    let start = Instant::now();
    touch(&client, "slow").await.unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(400), "{took:?}");
    proxy.delay(Duration::ZERO);
}

#[tokio::test]
async fn a_proxy_leads_out_of_a_network_namespace() {
    let cluster = Cluster::start(Options::bare()).await.unwrap();
    let net = Net::new().unwrap();
    let near = SocketAddr::new(NODE_V4.into(), 6443);
    let client = cluster.client_at(&cluster.admin(), near).await.unwrap();
    let within = |name: &'static str| {
        let client = client.clone();
        net.node().run(async move { Ok(touch(&client, name).await?) })
    };
    assert!(within("nobody-there").await.is_err());
    let from = End::inside(net.node(), near).unwrap();
    let proxy = Proxy::between(from, End::here(cluster.address())).await.unwrap();
    within("one").await.unwrap();
    proxy.refuse().await;
    proxy.cut();
    assert!(within("refused").await.is_err());
    proxy.accept().await.unwrap();
    within("two").await.unwrap();
}
