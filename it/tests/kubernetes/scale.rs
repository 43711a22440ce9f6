//! A large mesh: what following it costs, and how far behind it is. Run by hand, on a release build:
//! `AETHER_IT_PROGRAMS=target/release cargo test -p it --test kubernetes -- --ignored --nocapture scale`.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use it::cluster::{Cluster, Options};
use it::delta::Stream;
use it::latency::Latencies;
use it::objects::Objects;
use it::plane::Plane;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::stage::{CALLER, SOON, calls, pod, service, slice};

const SERVICES: u32 = 5_000;
const PODS_OF_EACH: u32 = 4;
const CHANGES_PER_SECOND: u32 = 100;
const SECONDS: u32 = 60;

fn address(n: u32) -> String {
    Ipv4Addr::from_bits(0x0a80_0000 + n).to_string()
}

async fn create(objects: &Objects, all: impl Iterator<Item = Value>) -> Result<()> {
    let created = stream::iter(all).map(|object| async move { objects.create(&object).await });
    created.buffer_unordered(24).try_for_each(|_| async { Ok(()) }).await
}

/// Resident memory in MiB, now and at most, and processor time in seconds.
fn costs(id: u32) -> Result<(u64, u64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let of = |name: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name)).context("a line")?;
        Ok(line.split_whitespace().nth(1).context("a number")?.parse::<u64>()? / 1024)
    };
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let fields: Vec<_> = stat.rsplit(')').next().context("fields")?.split_whitespace().collect();
    let ticks: u32 = fields[11].parse::<u32>()? + fields[12].parse::<u32>()?;
    Ok((of("VmRSS")?, of("VmHWM")?, f64::from(ticks) / 100.0))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes, and is a measurement"]
async fn scale() -> Result<()> {
    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    calls(&objects).await?;
    let labels = json!({ "aether.io/managed": "true" });
    let begun = Instant::now();
    create(&objects, (0..SERVICES).map(|n| service(&format!("s-{n}"), json!({}), json!({}))))
        .await?;
    let slices = (0..SERVICES).map(|n| {
        let addresses: Vec<_> = (0..PODS_OF_EACH).map(|m| address(n * PODS_OF_EACH + m)).collect();
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        slice(&format!("s-{n}-1"), &format!("s-{n}"), &addresses)
    });
    create(&objects, slices).await?;
    create(
        &objects,
        (0..SERVICES * PODS_OF_EACH).map(|n| pod(&format!("p-{n}"), labels.clone(), json!({}))),
    )
    .await?;
    println!("{} objects were made in {:?}", SERVICES * (2 + PODS_OF_EACH), begun.elapsed());

    let begun = Instant::now();
    let mut plane = Plane::start(&cluster.kubeconfig(&cluster.admin())?, &[])?;
    plane.says(&["xDS on a Unix socket"], SOON).await?;
    plane.readyz(200, &["source: ready"], Duration::from_mins(2)).await?;
    let id = plane.process().id();
    let (now, most, cpu) = costs(id)?;
    println!(
        "all is read and served after {:?}: {now} MiB, at most {most} MiB, {cpu} s of processor",
        begun.elapsed()
    );

    let (tap, mut arrivals) = mpsc::unbounded_channel();
    let open = Instant::now();
    let stream = Stream::open_tapped(plane.socket(), CALLER, tap).await?;
    let all = |held: &it::delta::Held| held.names("endpoint").len() == SERVICES as usize;
    stream.until("all endpoints", Duration::from_mins(2), all).await?;
    println!("a proxy has everything after {:?}", open.elapsed());
    let listener = tokio::spawn(async move {
        let mut seen = HashMap::new();
        while let Some(arrival) = arrivals.recv().await {
            let it::delta::Arrival { kind, bytes, at, .. } = arrival;
            if kind == "endpoint" {
                for one in it::delta::endpoints(&bytes).unwrap_or_default() {
                    let address = one.split(':').next().unwrap_or_default().to_owned();
                    seen.entry(address).or_insert(at);
                }
            }
        }
        seen
    });

    let (_, _, before) = costs(id)?;
    let begun = Instant::now();
    let changes = SECONDS * CHANGES_PER_SECOND;
    let made = stream::iter(0..changes).map(|n| {
        let objects = &objects;
        async move {
            let at = begun + Duration::from_secs(1) * n / CHANGES_PER_SECOND;
            tokio::time::sleep_until(at.into()).await;
            let service = format!("s-{}", n % SERVICES);
            let fresh = address(0x10_0000 + n);
            let change = json!({
                "kind": "EndpointSlice",
                "metadata": { "name": format!("{service}-1"), "namespace": "shop" },
                "endpoints": [{ "addresses": [fresh], "conditions": { "ready": true } }],
            });
            let sent = Instant::now();
            objects.merge(&change).await?;
            anyhow::Ok((fresh, sent, sent.elapsed()))
        }
    });
    let made: Vec<_> = made.buffer_unordered(64).try_collect().await?;
    let took = begun.elapsed();
    let (now, most, after) = costs(id)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(stream);
    let seen = listener.await?;
    let lags = made.iter().filter_map(|(address, sent, _)| {
        seen.get(address).map(|at| at.saturating_duration_since(*sent))
    });
    let lags: Vec<_> = lags.collect();
    let (count, lags) = (lags.len(), Latencies::new(lags));
    let requests = Latencies::new(made.iter().map(|(.., request)| *request).collect());
    println!("{changes} changes in {took:?}; {count} of them were seen");
    println!(
        "a request: median {:?}, 99th percentile {:?}",
        requests.percentile(50),
        requests.percentile(99)
    );
    println!(
        "from before the request to the stream: median {:?}, 99th percentile {:?}",
        lags.percentile(50),
        lags.percentile(99)
    );
    println!("{now} MiB, at most {most} MiB; {:.2} cores", (after - before) / took.as_secs_f64());
    ensure!(count == made.len(), "{} changes were never seen", made.len() - count);
    Ok(())
}
