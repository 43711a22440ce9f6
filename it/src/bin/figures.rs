//! Measures what the closing notes report. Release builds, please:
//!
//! ```text
//! cargo build --release --workspace --bins
//! sudo target/release/figures large
//! sudo target/release/figures changes
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use it::aether::{Aether, Over};
use it::busy::{Busy, Speaks};
use it::envoy::Envoy;
use it::large::{self, Size};
use it::latency;
use it::net::Net;
use it::world::World;
use tokio::time::sleep;

const LIMIT: Duration = Duration::from_mins(2);

/// Measure aether with a real Envoy. Needs root.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Debug, Subcommand)]
enum Figure {
    /// A large folder: from start to ready, from start to a warm Envoy, and peak memory.
    Large {
        /// Services.
        #[arg(long, default_value_t = 5_000)]
        services: usize,
        /// Endpoints of each.
        #[arg(long, default_value_t = 5)]
        endpoints: usize,
        /// Managed pods.
        #[arg(long, default_value_t = 1)]
        pods: usize,
        /// How often.
        #[arg(long, default_value_t = 3)]
        times: usize,
        /// State-of-the-world xDS in place of delta.
        #[arg(long)]
        sotw: bool,
    },
    /// From a changed endpoint in a file to the first answer of the new one.
    Changes {
        /// How many.
        #[arg(long, default_value_t = 100)]
        changes: usize,
        /// State-of-the-world xDS in place of delta.
        #[arg(long)]
        sotw: bool,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().figure {
        Figure::Large { services, endpoints, pods, times, sotw } => {
            let world = World::new()?;
            large::write(&world, Size { services, endpoints, pods: pods.max(1) })?;
            println!("{services} Services, {endpoints} endpoints each, {pods} pods");
            for _ in 0..times {
                measure(&world, services, sotw).await?;
            }
        }
        Figure::Changes { changes, sotw } => {
            let speaks = if sotw { Speaks::Sotw } else { Speaks::Delta };
            let busy = Busy::start(&[speaks]).await?;
            let all = latency::of_endpoint_changes(&busy, changes).await?;
            let [median, late, worst] = [50, 99, 100].map(|percent| all.percentile(percent));
            println!(
                "{changes} changes, {speaks:?}: median {median:.1?}, 99th percentile {late:.1?}, worst {worst:.1?}"
            );
        }
    }
    Ok(())
}

/// One start without any proxy, and one with an Envoy that starts at the same time.
async fn measure(world: &World, services: usize, sotw: bool) -> Result<()> {
    let net = Net::new()?;
    let pod = net.pod()?;
    let begun = Instant::now();
    let mut aether = Aether::start(&net, world.path(), &[])?;
    let ready = read(&mut aether, begun, 1).await?;
    let alone = peak(aether.process().id())?;
    let protocol: &[&str] = if sotw { &["--protocol", "sotw"] } else { &[] };
    let bootstrap = aether.bootstrap("pod/team-0/pod-0", Over::Socket, protocol)?;
    aether.kill()?;

    let begun = Instant::now();
    aether.restart()?;
    let mut envoy = Envoy::start(&pod, &bootstrap)?;
    let with_envoy = read(&mut aether, begun, 2).await?;
    envoy.ready(LIMIT).await?;
    let warm = begun.elapsed();
    let clusters = envoy.stat("cluster_manager.active_clusters").await?;
    let warming = envoy.stat("cluster_manager.warming_clusters").await?;
    if clusters < services as u64 || warming > 0 {
        bail!("Envoy has {clusters} clusters and {warming} warming ones");
    }
    println!(
        "ready after {ready:.2?}, peak {alone} MB; beside a starting Envoy: ready after {with_envoy:.2?}, Envoy warm \
         after {warm:.2?} ({clusters} clusters), peak {} MB (Envoy {} MB)",
        peak(aether.process().id())?,
        peak(envoy.process().id())?,
    );
    Ok(())
}

/// Waits until aether says, for this many a time, that it has read the manifests; how long that took.
async fn read(aether: &mut Aether, begun: Instant, times: usize) -> Result<Duration> {
    while aether.log().matches("the objects are read").count() < times {
        aether.process().must_run()?;
        if begun.elapsed() > LIMIT {
            bail!("not ready after {LIMIT:?}:\n{}", aether.log());
        }
        sleep(Duration::from_millis(2)).await;
    }
    Ok(begun.elapsed())
}

/// The largest memory that a process ever had resident, in MB of 10^6 bytes.
fn peak(id: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmHWM")?;
    Ok(kib.trim().parse::<u64>()? * 1024 / 1_000_000)
}
