//! Files of 50 MB: one that holds Services among much else, and one that holds nothing that can be read.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use it::eventually;

use super::{Rig, service};

/// How much, in bytes.
const HUGE: usize = 50 << 20;

/// How long this may take. A debug build is ten times as slow as what is used.
const PATIENCE: Duration = Duration::from_mins(1);

/// How much memory it may cost at most, in MiB: the text, its JSON, and the allocator's slack.
const MOST_MIB: u64 = 400;

/// The peak of a process's memory so far, in MiB.
fn peak(id: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024)
}

#[tokio::test]
async fn a_file_of_50_mb_is_served_or_reported_and_costs_nothing_else() -> Result<()> {
    let mut rig = Rig::start().await?;

    // ConfigMaps are ignored, and the Services among them count.
    let line =
        "        0123456789abcdefghijklmnopqrstuvwxyz: nothing that concerns the mesh, only long\n";
    let mut text = String::with_capacity(HUGE + (1 << 20));
    while text.len() < HUGE {
        let n = text.len();
        write!(
            text,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\ndata:\n  file: |\n"
        )?;
        (0..10_000).for_each(|_| text.push_str(line));
        text.push_str("---\n");
    }
    for object in service("last", 5, 80) {
        write!(text, "{}\n---\n", object.value())?;
    }
    assert!(text.len() > HUGE);
    let start = Instant::now();
    rig.world.put_text("huge.yaml", &text)?;
    let served = || async {
        let loaded = rig.loaded().await?;
        let last = loaded.get("clusters", "http:last.shop.aether.internal");
        last.map(drop).context("its Service is not there")
    };
    eventually("the huge file is served", PATIENCE, served).await?;
    let took = start.elapsed();
    let id = rig.aether.process().id();
    println!("50 MB of manifests are served after {took:?}, with a peak of {} MiB", peak(id)?);
    assert!(peak(id)? < MOST_MIB, "{} MiB", peak(id)?);

    // Now nothing in it can be read: it is quarantined, what it held is kept, and others are followed.
    let log = rig.aether.log().len();
    let before = rig.loaded().await?;
    rig.world.put_text("huge.yaml", &"]: {\u{1}\n".repeat(HUGE / 6))?;
    let start = Instant::now();
    let said = rig.says_within(PATIENCE, log, &["UnreadableFile", "huge.yaml"]).await?;
    assert!(said.contains("the 2 objects that the file held"), "{said}");
    assert!(said.len() < 2000, "{} bytes about one file", said.len());
    assert_eq!(rig.loaded().await?, before);
    println!(
        "50 MB of garbage are reported after {:?}, with a peak of {} MiB",
        start.elapsed(),
        peak(id)?
    );
    assert!(peak(id)? < MOST_MIB, "{} MiB", peak(id)?);
    rig.world.remove("huge")?;
    rig.world.put("cart", &service("cart", 2, 80))?;
    rig.follows().await?;
    Ok(())
}
