//! What is forwarded, when the way there is bad.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use it::backend::DnsBackend;

use super::stage::{CLUSTER, RESOLVER, Stage, without_upstream};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_not_asked_again_and_is_there_when_upstream_is_gone() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    for _ in 0..20 {
        let got = stage.ask("stranger.example", false).await?;
        ensure!(got.addresses.len() == 1, "{got:?}");
    }
    let asked = stage.cluster.queries();
    ensure!(asked == 1, "{asked} queries for one name within its TTL");
    let Stage { mut resolver, cluster, names, node } = stage;
    drop(cluster);
    // Past its time: 30 s are the longest that an answer is kept, so that this test can wait for it.
    tokio::time::sleep(Duration::from_secs(31)).await;
    for turn in 0..5 {
        let begun = Instant::now();
        let server = RESOLVER.parse()?;
        let ask = async move {
            it::client::ask(server, "stranger.example", false, Duration::from_secs(1)).await
        };
        let got = node.run(ask).await?;
        ensure!(got.addresses.len() == 1 && got.ttls[0] <= 5, "{turn}: {got:?}");
        ensure!(begun.elapsed() < Duration::from_millis(900), "{turn}: {:?}", begun.elapsed());
    }
    resolver.process().must_run()?;
    drop(names);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_that_its_client_gave_up_goes_on_and_is_kept() -> Result<()> {
    let (node, _names, _resolver) = without_upstream().await?;
    let (cluster, server) = (CLUSTER.parse()?, RESOLVER.parse()?);
    // Nobody is there yet; the client gives up after 300 ms.
    let ask = |limit| async move { it::client::ask(server, "late.example", false, limit).await };
    let gave_up = node.run(ask(Duration::from_millis(300))).await;
    ensure!(gave_up.is_err(), "{gave_up:?}");
    let zone = [("late.example".to_owned(), vec!["198.51.100.9".parse()?])].into();
    let late = DnsBackend::start(&node, cluster, zone).await?;
    it::eventually("the lookup to go on", Duration::from_secs(5), || async {
        ensure!(late.queries() > 0, "not asked");
        Ok(())
    })
    .await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let asked = late.queries();
    let got = node.run(ask(Duration::from_secs(1))).await?;
    ensure!(got.addresses.len() == 1 && late.queries() == asked, "{got:?}");
    Ok(())
}
