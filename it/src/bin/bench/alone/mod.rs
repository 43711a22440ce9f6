//! Ours alone, with a load client of this repository: delta streams that ask as an Envoy does.

mod fleet;
mod messages;
mod meter;
mod stream;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use it::large::{self, Size};
use it::world::World as Folder;

use self::fleet::{Fleet, in_bytes};
use self::meter::Meter;
use crate::figures::{Change, Cost, Figures, Phase, median};
use crate::plan::World;
use crate::serve::Serving;

/// How long all streams may take for one thing.
const LIMIT: Duration = Duration::from_mins(2);
/// When this long no response came, all is quiet.
const QUIET: Duration = Duration::from_millis(300);
/// How long nothing is done, to see what that costs.
const IDLE: Duration = Duration::from_secs(3);

/// Measures it in this world.
pub async fn measure(world: World, out: &Path, options: &[String]) -> Result<Figures> {
    let folder = Folder::new()?;
    // As many Services more as are added, of each ten of which the first speaks TCP and the fourth HTTP.
    let size = Size { services: world.services, endpoints: 5, pods: world.streams };
    large::write(&folder, size)?;
    let serving = Serving::ours(folder.path(), out, options).await?;
    let meter = Meter { process: serving.id() };
    let mut fleet = Fleet::new(serving.xds, world.streams);

    let mut figures = Figures::default();
    let (phase, converged) = connect(&mut fleet, meter).await?;
    figures.connect = phase;
    figures.converged_s = converged.as_secs_f64();

    let before = meter.cpu()?;
    tokio::time::sleep(IDLE).await;
    figures.idle_ms = (meter.cpu()? - before) * 1e3 / IDLE.as_secs_f64();

    for (change, times) in [(Change::Endpoint, 10), (Change::Http, 5), (Change::Tcp, 3)] {
        let mut costs = Vec::new();
        for time in 0..times {
            let next = (world.services / 10 + 1 + time) * 10;
            costs.push(
                once(&mut fleet, meter, change, || match change {
                    Change::Endpoint => {
                        let n = time * 7 % world.services;
                        large::move_endpoint(&folder, size, n, time)
                    }
                    Change::Http => large::add_service(&folder, size, next + 3),
                    Change::Tcp => large::add_service(&folder, size, next),
                })
                .await
                .with_context(|| change.words())?,
            );
        }
        let of = |figure: fn(&Cost) -> f64| costs.iter().map(figure).collect::<Vec<f64>>();
        let cost = Cost {
            cpu_ms: median(of(|cost| cost.cpu_ms)),
            p99_ms: median(of(|cost| cost.p99_ms)),
            bytes: of(|cost| cost.bytes).iter().sum::<f64>() / f64::from(times_as_u32(costs.len())),
        };
        figures.changes.insert(change, cost);
    }
    fleet.drop_all().await;
    figures.storm = storm(&mut fleet, meter).await?;
    // Whether all are served is seen by one change more.
    let last = || large::move_endpoint(&folder, size, 0, 10);
    once(&mut fleet, meter, Change::Endpoint, last).await.context("after the reconnect")?;
    figures.peak = meter.peak()?;
    Ok(figures)
}

/// Connects all streams, and waits until each has all and all is quiet.
async fn connect(fleet: &mut Fleet, meter: Meter) -> Result<(Phase, Duration)> {
    let (before, begun) = (meter.cpu()?, Instant::now());
    fleet.connect_all();
    let heard = fleet.until_complete(LIMIT, QUIET).await?;
    let phase = Phase {
        cpu_s: meter.cpu()? - before,
        quiet_s: heard.last.duration_since(begun).as_secs_f64(),
        bytes: heard.bytes,
    };
    Ok((phase, heard.p99.duration_since(begun)))
}

/// Connects all streams again. There may be nothing to send, so it is over when nothing came and the server used less
/// than a tenth of a core for a while.
async fn storm(fleet: &mut Fleet, meter: Meter) -> Result<Phase> {
    let (before, begun) = (meter.cpu()?, Instant::now());
    fleet.connect_all();
    let (mut bytes, mut busy, mut used) = (0, begun, before);
    while busy.elapsed() < QUIET {
        anyhow::ensure!(begun.elapsed() < LIMIT, "the server is not quiet within {LIMIT:?}");
        tokio::time::sleep(QUIET / 6).await;
        fleet.must_run()?;
        let (more, last) = fleet.drain();
        let now = meter.cpu()?;
        if last.is_some() || now - used > QUIET.as_secs_f64() / 60.0 {
            busy = Instant::now();
        }
        (bytes, used) = (bytes + more, now);
    }
    let quiet_s = busy.duration_since(begun).as_secs_f64();
    Ok(Phase { cpu_s: used - before, quiet_s, bytes: in_bytes(bytes) })
}

/// Makes one change, and waits until each stream has heard of it.
async fn once(
    fleet: &mut Fleet,
    meter: Meter,
    change: Change,
    make: impl FnOnce() -> Result<()>,
) -> Result<Cost> {
    let kinds = match change {
        Change::Endpoint => &["endpoint"][..],
        Change::Http => &["cluster", "endpoint", "virtual host"],
        Change::Tcp => &["cluster", "endpoint", "listener"],
    };
    let (before, begun) = (meter.cpu()?, Instant::now());
    make()?;
    let heard = fleet.until_heard(kinds, LIMIT, QUIET).await?;
    Ok(Cost {
        cpu_ms: (meter.cpu()? - before) * 1e3,
        p99_ms: heard.p99.duration_since(begun).as_secs_f64() * 1e3,
        bytes: heard.bytes / f64::from(times_as_u32(fleet.len())),
    })
}

/// Counts here are small.
fn times_as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
