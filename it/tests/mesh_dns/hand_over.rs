//! One process takes over from another under load, while the table changes: not one answer is lost or wrong.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::client;

use super::stage::{RESOLVER, Stage};

/// How long, in seconds; the figures of the closing notes are of a minute.
const SECONDS: u64 = 5;
/// Queries a second: what a debug build does beside everything else that runs.
const QUERIES: u64 = 4_000;

/// Asks for a name again and again, one datagram each, and holds every answer to what it may be.
async fn ask_on(name: &'static str, right: Vec<IpAddr>, ends: Arc<AtomicBool>) -> Result<u64> {
    let server: SocketAddr = RESOLVER.parse()?;
    let mut count = 0;
    while !ends.load(Ordering::Relaxed) {
        let got = client::ask(server, name, false, Duration::from_secs(5)).await;
        let got = got.with_context(|| format!("{name}: lost after {count} answers"))?;
        let one = got.addresses.first().filter(|_| got.addresses.len() == 1);
        ensure!(one.is_some_and(|one| right.contains(one)), "{name} after {count}: {got:?}");
        count += 1;
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_lost_or_wrong_while_processes_and_tables_change() -> Result<()> {
    let mut stage = Stage::set(&[]).await?;
    let queries = stage.resolver.folder().join("queries");
    let names = [
        "cart.shop.aether.internal",
        "db.cart.aether.internal",
        "cart.aether.internal",
        "stranger.example",
        "web.shop.svc",
    ];
    std::fs::write(&queries, names.map(|name| format!("{name} A\n")).concat())?;
    let mut load = stage.node.command("dnsperf");
    load.args(["-s", "127.0.0.1", "-d"]).arg(&queries);
    load.args([
        "-l",
        &SECONDS.to_string(),
        "-Q",
        &QUERIES.to_string(),
        "-c",
        "20",
        "-T",
        "1",
        "-t",
        "3",
    ]);
    let load = tokio::task::spawn_blocking(move || it::process::output(&mut load));

    let ends = Arc::new(AtomicBool::new(false));
    let mut asking = Vec::new();
    for (name, right) in [
        ("cart.shop.aether.internal", vec!["10.96.0.7"]),
        ("flip.shop.aether.internal", vec!["10.96.9.0", "10.96.9.1"]),
        ("stranger.example", vec!["198.51.100.7"]),
    ] {
        let right = right.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        // The changing name is there from the first table of the change on.
        let records = [&super::stage::RECORDS[..], &[("shop/flip", "10.96.9.0")]].concat();
        stage.names.write(&records, &super::stage::SHORT)?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        asking.push(stage.node.spawn(ask_on(name, right, ends.clone()))?);
    }
    let begun = Instant::now();
    let (mut changes, mut replaced) = (0_u32, 0_u32);
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        let flip = if changes % 2 == 0 { "10.96.9.1" } else { "10.96.9.0" };
        let records = [&super::stage::RECORDS[..], &[("shop/flip", flip)]].concat();
        stage.names.write(&records, &super::stage::SHORT)?;
        changes += 1;
        if replaced < 3 && changes % 12 == 0 {
            let took = stage.resolver.replace().await?;
            ensure!(took < Duration::from_secs(2), "the old process took {took:?} to end");
            replaced += 1;
        } else {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    ends.store(true, Ordering::Relaxed);
    let mut asked = 0;
    for worker in asking {
        asked += worker.await??;
    }
    let said = load.await??;
    eprintln!("{changes} tables, {replaced} processes, {asked} answers looked at\n{said}");
    ensure!(replaced == 3 && changes > 20 && asked > 1_000);
    let line = |start: &str| {
        let found = said.lines().find_map(|line| line.trim().strip_prefix(start));
        found.map(str::trim).with_context(|| format!("no {start:?} in {said}"))
    };
    ensure!(line("Queries lost:")?.starts_with("0 "), "{said}");
    ensure!(line("Response codes:")?.ends_with("(100.00%)"), "{said}");
    ensure!(line("Response codes:")?.starts_with("NOERROR"), "{said}");
    Ok(())
}
