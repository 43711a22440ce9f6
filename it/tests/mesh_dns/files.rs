//! The snapshot file as `aether serve` writes it, and as a reader sees it at any moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aether::model::RecordsFile;
use anyhow::{Context, Result, bail, ensure};
use it::places;
use it::process::{Process, Spec};
use it::world::{World, served};

/// How often a writer is killed; `AETHER_IT_KILLS` asks for more.
const KILLS: u32 = 50;
/// How long a table may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);
/// Names in each of two worlds; the second one's addresses differ from the first one's.
const NAMES: usize = 200;

fn spec(world: &World, path: &Path, folder: &Path, options: &[&str]) -> Result<Spec> {
    let mut args: Vec<String> =
        ["serve", "--xds-address", "none", "--admin-address", "none"].map(str::to_owned).into();
    for (option, value) in [
        ("--manifests", world.path()),
        ("--mesh-dns-snapshot", path),
        ("--xds-socket", &folder.join("xds.sock")),
    ] {
        args.extend([option.to_owned(), value.display().to_string()]);
    }
    args.extend(options.iter().map(|&option| option.to_owned()));
    Ok(Spec::new(&places::program("aether")?, args, &folder.join("aether.log")))
}

fn fill(world: &World, turn: u8) -> Result<()> {
    let mut objects = Vec::new();
    for n in 0..NAMES {
        let ip = format!("10.96.{}.{}", turn, n + 1);
        objects.extend(served(
            &format!("shop/s{n}"),
            &[&ip],
            &[(80, "http", 8080)],
            "10.244.9.9".parse()?,
        )?);
    }
    world.put("all", &objects)
}

fn read(path: &Path) -> Result<RecordsFile> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// Reads again and again: each time a whole table, of one world, and never an older one than before.
fn follow(path: PathBuf, ends: Arc<AtomicBool>, seen: Arc<AtomicU64>) -> Result<u64> {
    let (mut generation, mut reads) = (0, 0);
    while !ends.load(Ordering::Relaxed) {
        let file = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<RecordsFile>(&bytes)
                .with_context(|| format!("{} bytes after {reads} reads", bytes.len()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && reads == 0 => continue,
            Err(error) => return Err(error).context("the file was there before"),
        };
        ensure!(file.generation >= generation, "{} after {generation}", file.generation);
        generation = file.generation;
        seen.store(generation, Ordering::Relaxed);
        let worlds = |turn: &str| file.records.values().filter(|ip| ip.starts_with(turn)).count();
        let whole = [worlds("10.96.1."), worlds("10.96.2.")];
        ensure!(whole == [NAMES, 0] || whole == [0, NAMES], "{whole:?} of generation {generation}");
        ensure!(file.short.len() == NAMES, "{} short names", file.short.len());
        reads += 1;
    }
    Ok(reads)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_whole_tables_however_often_the_writer_is_killed() -> Result<()> {
    let kills = match std::env::var("AETHER_IT_KILLS") {
        Ok(number) => number.parse()?,
        Err(_) => KILLS,
    };
    let (folder, world) = (places::folder()?, World::new()?);
    let path = folder.path().join("mesh-dns/records.json");
    fill(&world, 1)?;
    let spec = spec(&world, &path, folder.path(), &[])?;
    let (ends, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (path_read, ends_read, seen_read) = (path.clone(), ends.clone(), seen.clone());
    let reader = std::thread::spawn(move || follow(path_read, ends_read, seen_read));

    let mut random = fastrand::Rng::with_seed(11);
    let (mut turn, mut by_writing) = (1, 0);
    for kill in 0..kills {
        let before = seen.load(Ordering::Relaxed);
        let mut writer = Process::start(&spec)?;
        // Some while they start, most among their tables, at any moment of writing one.
        let early = kill % 5 == 0;
        let begun = Instant::now();
        while seen.load(Ordering::Relaxed) == before {
            let limit = if early { Duration::from_millis(200) } else { LONGEST };
            if begun.elapsed() > limit {
                ensure!(early, "no table after {limit:?}:\n{}", writer.log());
                break;
            }
            turn = 3 - turn;
            fill(&world, turn)?;
            tokio::time::sleep(Duration::from_millis(random.u64(20..80))).await;
        }
        for _ in 0..random.u8(..3) {
            turn = 3 - turn;
            fill(&world, turn)?;
            tokio::time::sleep(Duration::from_micros(random.u64(..30_000))).await;
        }
        writer.kill()?;
        by_writing += u32::from(seen.load(Ordering::Relaxed) > before);
        if reader.is_finished() {
            bail!("the reader saw something wrong at kill {kill}: {:?}", reader.join());
        }
    }
    // One that is let live goes on from there.
    let last = seen.load(Ordering::Relaxed);
    let writer = Process::start(&spec)?;
    let begun = Instant::now();
    // One of the two tables is in the file already, and is not written again.
    while seen.load(Ordering::Relaxed) <= last {
        ensure!(begun.elapsed() < LONGEST, "generation {last} still:\n{}", writer.log());
        turn = 3 - turn;
        fill(&world, turn)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ends.store(true, Ordering::Relaxed);
    let reads = match reader.join() {
        Ok(reads) => reads?,
        Err(_) => bail!("the reader panicked"),
    };
    eprintln!(
        "{kills} kills, {by_writing} of them after a new table; {reads} whole tables read, generation {last}"
    );
    ensure!(
        by_writing > kills / 10,
        "only {by_writing} of {kills} were killed after they had written"
    );
    let left = std::fs::read_dir(path.parent().context("a folder")?)?.count();
    ensure!(left <= 2, "{left} files in the folder of the snapshot");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_stamped_while_nothing_changes_and_not_while_the_process_is_stopped()
-> Result<()> {
    let (folder, world) = (places::folder()?, World::new()?);
    let path = folder.path().join("deep/er/records.json");
    fill(&world, 1)?;
    let spec = spec(&world, &path, folder.path(), &["--mesh-dns-heartbeat", "1s"])?;
    let mut writer = Process::start(&spec)?;
    let stamped_after = |at: u64| {
        let path = path.clone();
        async move {
            it::eventually("a stamp", Duration::from_secs(20), || async {
                let file = read(&path)?;
                ensure!(file.written_at > at, "{} still", file.written_at);
                Ok(file)
            })
            .await
        }
    };
    let first = stamped_after(0).await?;
    let second = stamped_after(first.written_at).await?;
    ensure!(second.generation == first.generation, "a stamp is no change");
    writer.signal(nix::sys::signal::Signal::SIGSTOP)?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = read(&path)?;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    ensure!(read(&path)? == before, "a stopped process stamped its file");
    writer.signal(nix::sys::signal::Signal::SIGCONT)?;
    stamped_after(before.written_at).await?;
    // The folder goes, with all that is in it, and is made again.
    std::fs::remove_dir_all(folder.path().join("deep"))?;
    let again = stamped_after(before.written_at).await?;
    ensure!(again.generation == first.generation, "{again:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_and_a_read_only_one_are_told_and_outlived() -> Result<()> {
    let (folder, world) = (places::folder()?, World::new()?);
    fill(&world, 1)?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk)?;
    let mount = |words: &[&str]| {
        let mut command = std::process::Command::new("mount");
        it::process::output(command.args(words).arg(&disk)).map(drop)
    };
    // A file system with room for one table and not for two.
    mount(&["-t", "tmpfs", "-o", "size=24k", "tmpfs"])?;
    let _unmount = Unmount(disk.clone());
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![7; 20 * 1024])?;
    let path = disk.join("records.json");
    let spec = spec(&world, &path, folder.path(), &["--mesh-dns-heartbeat", "1s"])?;
    let mut writer = Process::start(&spec)?;
    let says = |writer: &Process, words: &'static str| {
        let log = writer.log();
        async move {
            ensure!(log.contains(words), "not told yet");
            Ok(())
        }
    };
    let limit = Duration::from_secs(20);
    it::eventually("words on the full disk", limit, || says(&writer, "free some space")).await?;
    ensure!(!path.exists());
    std::fs::remove_file(&ballast)?;
    it::eventually("the file", limit, || async { read(&path) }).await?;
    mount(&["-o", "remount,ro"])?;
    it::eventually("words on the read-only disk", limit, || {
        says(&writer, "mount that file system writable")
    })
    .await?;
    let before = read(&path)?;
    mount(&["-o", "remount,rw"])?;
    it::eventually("a new stamp", Duration::from_secs(30), || async {
        ensure!(read(&path)?.written_at > before.written_at, "the old one still");
        Ok(())
    })
    .await?;
    writer.must_run()?;
    writer.kill()?;
    Ok(())
}

/// Unmounts when it is dropped.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
