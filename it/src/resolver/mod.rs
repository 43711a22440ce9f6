//! The resolver of a node: `mesh-dns` over a snapshot file of our own.

mod clients;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aether::model::RecordsFile;
use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::net::Netns;
use crate::places;
use crate::process::{Process, Spec};

pub use clients::{Clients, Language};

/// How long a process may take to start on a busy machine.
const READY: Duration = Duration::from_secs(20);

/// A snapshot file that a test writes in the place of `aether serve`.
#[derive(Debug)]
pub struct Names {
    folder: TempDir,
    generation: u64,
}

impl Names {
    /// No file yet, in a folder of its own.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: places::folder()?, generation: 0 })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mesh-dns/records.json")
    }

    /// Replaces the file. Records with a `:` in their address are IPv6.
    pub fn write(&mut self, records: &[(&str, &str)], short: &[(&str, &str)]) -> Result<()> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let (v6, v4): (BTreeMap<_, _>, BTreeMap<_, _>) =
            records.iter().map(owned).partition(|(_, address)| address.contains(':'));
        self.generation += 1;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        self.put(&RecordsFile {
            written_at: now.as_secs(),
            generation: self.generation,
            records: v4,
            records6: v6,
            short: short.iter().map(owned).collect(),
        })
    }

    /// Replaces the file by this content.
    pub fn put(&self, content: &RecordsFile) -> Result<()> {
        self.put_text(&serde_json::to_string(content)?)
    }

    /// Replaces the file by this text, good or not.
    pub fn put_text(&self, text: &str) -> Result<()> {
        let path = self.path();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = path.with_extension("fresh");
        std::fs::write(&fresh, text)?;
        Ok(std::fs::rename(&fresh, &path)?)
    }
}

/// `mesh-dns`, running in a network namespace. Dropped, it is killed.
#[derive(Debug)]
pub struct Resolver {
    process: Process,
    spec: Spec,
    started: usize,
    folder: TempDir,
}

impl Resolver {
    /// Starts it with these further options, and waits until it serves.
    pub async fn start(
        netns: &Netns,
        snapshot: &Path,
        listen: &[SocketAddr],
        upstream: &[SocketAddr],
        options: &[&str],
    ) -> Result<Self> {
        let folder = places::folder()?;
        let mut args = vec!["--snapshot".to_owned(), snapshot.display().to_string()];
        for (option, addresses) in [("--listen", listen), ("--upstream", upstream)] {
            for address in addresses {
                args.extend([option.to_owned(), address.to_string()]);
            }
        }
        args.extend(options.iter().map(|&option| option.to_owned()));
        let log = folder.path().join("mesh-dns.log");
        let mut spec = Spec::new(&places::program("mesh-dns")?, args, &log);
        spec.netns = Some(netns.name().to_owned());
        let mut resolver = Self { process: Process::start(&spec)?, spec, started: 1, folder };
        resolver.serves().await?;
        Ok(resolver)
    }

    /// Waits until the newest process serves.
    async fn serves(&mut self) -> Result<()> {
        let start = tokio::time::Instant::now();
        while self.process.log().matches("resolving").count() < self.started {
            self.process.must_run()?;
            if start.elapsed() > READY {
                bail!("mesh-dns does not serve after {READY:?}:\n{}", self.process.log());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Starts a second process beside the first, waits until it serves, and then tells the first to stop, as a rollout
    /// does. Returns how long the first took to end.
    pub async fn replace(&mut self) -> Result<Duration> {
        let mut old = std::mem::replace(&mut self.process, Process::start(&self.spec)?);
        self.started += 1;
        self.serves().await?;
        let told = tokio::time::Instant::now();
        old.signal(Signal::SIGTERM)?;
        while old.ended()?.is_none() {
            ensure!(told.elapsed() < READY, "the old process does not end:\n{}", old.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let status = old.wait(READY)?;
        ensure!(status.success(), "the old process ended with {status}:\n{}", old.log());
        Ok(told.elapsed())
    }

    /// Its process, to look at it or to signal it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What its processes wrote so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// A folder for what belongs to it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The memory that it has resident, in kB.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB")).unwrap_or_default();
        Ok(number.trim().parse()?)
    }
}
