//! Two replicas against a real API server: one of them leads, and never two; it hands over when it is told to stop, and
//! does not come back when it was killed, stopped or cut off.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod stage;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use it::delta::Stream;
use nix::sys::signal::Signal;
use serde_json::json;

use stage::{DEADLINE, DURATION, SOON, Stage, long};

/// A leader that was lost without a word is followed by another within this time.
const FOLLOWED: Duration = Duration::from_millis(DURATION + 3000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leads_and_both_serve_the_same() -> Result<()> {
    let stage = Stage::new(&[]).await?;
    stage.runs("caller", "caller").await?;
    stage.runs("cart-0", "cart").await?;
    stage.leader().await?;
    // The Service of each account is made once, by the leader.
    let mut held = Vec::new();
    for replica in &stage.replicas {
        let stream = Stream::open(replica.socket(), "pod/shop/caller").await?;
        let whole = |held: &it::delta::Held| {
            held.endpoints("shop/cart:18081").is_some_and(|all| all.len() == 1)
                && held.endpoints("shop/caller:18081").is_some_and(|all| all.len() == 1)
                && held.names("virtual host").len() == 3
        };
        stream.until("the generated Services", SOON, whole).await?;
        stream.quiet(Duration::from_millis(500), SOON).await?;
        held.push(stream.now().resources);
    }
    ensure!(held[0] == held[1], "{:#?}\n{:#?}", held[0].keys(), held[1].keys());
    ensure!(stage.never_two(Duration::from_secs(3)).await?, "one of them leads");
    let attempts = "aether_generator_attempts_total{operation=\"create\",outcome=\"written\"}";
    let mut written = 0.0;
    for replica in &stage.replicas {
        written += replica.metric(attempts).await?.unwrap_or_default();
    }
    ensure!((written - 2.0).abs() < 0.1, "{written} Services were made");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_told_to_stop_hands_over_within_a_second() -> Result<()> {
    let mut stage =
        Stage::new(&["--lease-duration", "15s", "--lease-renew-deadline", "10s"]).await?;
    let mut took = Vec::new();
    for _ in 0..5 {
        let leader = stage.leader().await?;
        let begun = Instant::now();
        stage.replicas[leader].process().signal(Signal::SIGTERM)?;
        let other = 1 - leader;
        while stage.replicas[other].metric("aether_leader").await? != Some(1.0) {
            ensure!(begun.elapsed() < Duration::from_secs(10), "{}", stage.replicas[other].log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        took.push(begun.elapsed());
        let status = stage.replicas[leader].process().wait(SOON)?;
        ensure!(status.success(), "{status}");
        stage.replicas[leader].restart()?;
        stage.candidate(leader).await?;
    }
    println!("hand-over took {took:?}");
    ensure!(took.iter().all(|took| *took < Duration::from_secs(1)), "{took:?}");
    let transitions = stage.lease().await?["spec"]["leaseTransitions"].as_i64();
    ensure!(transitions == Some(5), "{transitions:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_killed_is_followed() -> Result<()> {
    let mut stage = Stage::new(&[]).await?;
    let leader = stage.leader().await?;
    stage.replicas[leader].process().kill()?;
    let killed = Instant::now();
    let other = 1 - leader;
    // Its last renewal is at most one interval old.
    let early = Duration::from_millis(DURATION - 1000);
    while stage.replicas[other].metric("aether_leader").await? != Some(1.0) {
        ensure!(killed.elapsed() < FOLLOWED, "{}", stage.replicas[other].log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("followed after {:?}", killed.elapsed());
    ensure!(killed.elapsed() > early, "after {:?}: too early", killed.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_stopped_and_goes_on_writes_nothing() -> Result<()> {
    let mut stage = Stage::new(&[]).await?;
    stage.leader().await?;
    stage.runs("first-0", "first").await?;
    stage.service("first").await?;
    // Whoever wrote it, should a busy machine have changed the leader meanwhile.
    let leader = usize::from(stage.replicas[0].lines(&["a mesh Service is written"]).is_empty());
    let other = 1 - leader;
    stage.replicas[leader].process().signal(Signal::SIGSTOP)?;
    // Something to write is queued at it while it sleeps.
    stage.runs("second-0", "second").await?;
    tokio::time::sleep(long(Duration::from_millis(DURATION + 4000), Duration::from_mins(1))).await;
    ensure!(stage.replicas[other].metric("aether_leader").await? == Some(1.0));
    stage.service("second").await?;
    // And something for the moment when it wakes.
    stage.runs("third-0", "third").await?;
    stage.service("third").await?;
    let before = stage.lease().await?;
    stage.replicas[leader].process().signal(Signal::SIGCONT)?;
    stage.replicas[leader].says(&["does not lead any more"], SOON).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(stage.replicas[leader].metric("aether_leader").await? == Some(0.0));
    ensure!(stage.replicas[other].metric("aether_leader").await? == Some(1.0));
    let after = stage.lease().await?;
    for field in ["holderIdentity", "leaseTransitions", "acquireTime"] {
        ensure!(before["spec"][field] == after["spec"][field], "{before}\n{after}");
    }
    let mine = stage.replicas[leader].lines(&["a mesh Service is written"]);
    ensure!(mine.len() == 1 && mine[0].contains("shop/first"), "{mine:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_ends_before_another_begins() -> Result<()> {
    let stage = Stage::new(&[]).await?;
    for _ in 0..2 {
        let leader = stage.leader().await?;
        let other = 1 - leader;
        stage.proxies[leader].blackhole(true);
        let cut = Instant::now();
        let (mut ended, mut begun) = (None, None);
        while begun.is_none() {
            ensure!(cut.elapsed() < FOLLOWED, "{}", stage.replicas[other].log());
            if stage.replicas[leader].metric("aether_leader").await? == Some(0.0) {
                ended = ended.or(Some(cut.elapsed()));
            }
            if stage.replicas[other].metric("aether_leader").await? == Some(1.0) {
                begun = Some(cut.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("cut off: the old one ended after {ended:?}, the new one began after {begun:?}");
        ensure!(
            ended.is_some_and(|ended| ended < Duration::from_millis(DEADLINE + 500)),
            "{ended:?}"
        );
        stage.proxies[leader].blackhole(false);
        stage.proxies[leader].cut();
        stage.candidate(leader).await?;
        ensure!(stage.never_two(Duration::from_secs(2)).await?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_write_into_the_lease_stays_and_a_deleted_one_comes_back() -> Result<()> {
    let stage = Stage::new(&[]).await?;
    let leader = stage.leader().await?;
    stage
        .objects
        .merge(&json!({
            "kind": "Lease",
            "metadata": { "name": "aether", "namespace": "aether-system", "labels": { "team": "mesh" } },
        }))
        .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(stage.replicas[leader].metric("aether_leader").await? == Some(1.0));
    let lease = stage.lease().await?;
    ensure!(lease["metadata"]["labels"]["team"] == "mesh", "{lease}");
    let managers = lease["metadata"]["managedFields"].to_string();
    ensure!(managers.contains("\"manager\":\"aether\""), "{managers}");
    let name =
        json!({ "kind": "Lease", "metadata": { "name": "aether", "namespace": "aether-system" } });
    stage.objects.delete(&name).await?;
    // Whoever led until then may give it up before another has it; two never have it.
    stage.never_two(Duration::from_secs(2)).await?;
    stage.leader().await?;
    Ok(())
}
