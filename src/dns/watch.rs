//! Follows the snapshot file by its folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tracing::{info, warn};

use super::metrics::Metrics;
use super::table::Table;
use crate::health::Part;
use crate::model::RecordsFile;

/// How often the file is looked at without any event: events can be lost, and a folder that is
/// not there has none.
const LOOK: Duration = Duration::from_secs(1);
/// The largest file that is read, in bytes: 500,000 names.
const LARGEST: u64 = 64 << 20;

/// Why a snapshot file cannot be used.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it has {0} bytes, more than {LARGEST}: is it a snapshot file?")]
    TooLarge(u64),
    #[error("it is no snapshot: {0}; its writer replaces it whole, so look for another writer")]
    Json(#[from] serde_json::Error),
}

/// What tells one version of a file from another.
type Version = (u64, u64, u64, i64, i64);

/// Follows one file.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    folder: PathBuf,
    table: Arc<ArcSwapOption<Table>>,
    metrics: Arc<Metrics>,
    part: Part,
    /// The version that was read last, if there was one to look at.
    seen: Option<Version>,
    missing_told: bool,
}

impl Follower {
    /// Follows a file that need not be there yet, nor its folder.
    pub fn new(
        path: &Path,
        table: Arc<ArcSwapOption<Table>>,
        metrics: Arc<Metrics>,
        part: Part,
    ) -> Self {
        part.waiting(
            "there is no snapshot file yet: aether serve writes it with --mesh-dns-snapshot",
        );
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        Self { path, folder, table, metrics, part, seen: None, missing_told: false }
    }

    /// Reads the file if it is another than at the last look. Whatever is wrong with it, the last
    /// good table stays.
    pub fn look(&mut self) {
        let found = fs::metadata(&self.path);
        let version = match &found {
            Ok(found) => Some(version(found)),
            Err(error) => {
                if !std::mem::replace(&mut self.missing_told, true) {
                    let path = self.path.display();
                    if self.table.load().is_some() {
                        warn!(%path, %error, "the snapshot file is gone; its last table is kept");
                    } else {
                        warn!(%path, %error, "no snapshot file yet: mesh names fail, all others are forwarded; it is taken as soon as it is there");
                    }
                }
                None
            }
        };
        if version.is_none() || version == self.seen {
            self.seen = version;
            return;
        }
        self.missing_told = false;
        match self.read() {
            Ok((version, table)) => {
                self.seen = Some(version);
                self.take(&table);
            }
            Err(error) => {
                // Not the same version over and over; a new one is read anew.
                self.seen = version;
                self.metrics.table_failed();
                let path = self.path.display();
                warn!(%path, "the snapshot file is not used: {error}; the table before it is kept");
                let why = format!("the snapshot file {path} is not used: {error}");
                if self.table.load().is_some() {
                    self.part.degraded(why);
                } else {
                    self.part.waiting(why);
                }
            }
        }
    }

    fn read(&self) -> Result<(Version, RecordsFile), SnapshotError> {
        let mut file = File::open(&self.path)?;
        // Of the very file that is read, which may be newer than the one that was looked at.
        let found = file.metadata()?;
        if found.len() > LARGEST {
            return Err(SnapshotError::TooLarge(found.len()));
        }
        let mut bytes = Vec::new();
        file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok((version(&found), serde_json::from_slice(&bytes)?))
    }

    fn take(&self, file: &RecordsFile) {
        let (table, rejected) = Table::new(file);
        self.metrics.table(&table, rejected.len());
        let before = self.table.load_full();
        let changed = before.as_ref().is_none_or(|before| before.generation != table.generation);
        if changed {
            for rejected in rejected.iter().take(10) {
                warn!("{rejected}");
            }
            if before.is_none() {
                info!(
                    generation = table.generation,
                    names = table.len(),
                    "the first table is read"
                );
            }
        }
        self.table.store(Some(Arc::new(table)));
        self.part.ready();
    }

    /// Follows it on a thread of its own, for as long as the process lives.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn spawn(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("mesh-dns-file".into());
        thread.spawn(move || self.run()).map(drop)
    }

    fn run(mut self) {
        let (events, happened) = channel();
        let mut watched = Watched::default();
        loop {
            watched.keep(&self.folder, &events);
            self.look();
            wait(&happened);
        }
    }
}

/// Until something happens in the folder, or a while has passed.
fn wait(happened: &Receiver<()>) {
    match happened.recv_timeout(LOOK) {
        Ok(()) => while happened.try_recv().is_ok() {},
        Err(RecvTimeoutError::Timeout) => {}
        // The sender lives in the caller; if ever, not in a busy loop.
        Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
    }
}

/// The watch on the folder, renewed when the folder is another one.
#[derive(Default)]
struct Watched {
    watcher: Option<RecommendedWatcher>,
    folder: Option<(u64, u64)>,
    /// Set when the folder that is watched was removed: one that is made in its place at once may
    /// be given its number, and look the same.
    removed: Arc<AtomicBool>,
    told: bool,
}

impl Watched {
    fn keep(&mut self, folder: &Path, events: &Sender<()>) {
        let now = fs::metadata(folder).ok().map(|found| (found.dev(), found.ino()));
        if now == self.folder && !self.removed.load(Relaxed) {
            return;
        }
        self.folder = now;
        self.watcher = None;
        // Of its own: the events of the watch before may still come.
        self.removed = Arc::default();
        if now.is_none() {
            return;
        }
        let (events, removed, watched) = (events.clone(), self.removed.clone(), folder.to_owned());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the file is an event too, and nothing that it should be read for.
            let Some(event) = event.ok().filter(|event| !event.kind.is_access()) else { return };
            if event.kind.is_remove() && event.paths.contains(&watched) {
                removed.store(true, Relaxed);
            }
            let _ = events.send(());
        });
        let watching = watcher.and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive).map(|()| watcher)
        });
        match watching {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) if !std::mem::replace(&mut self.told, true) => {
                warn!(folder = %folder.display(), %error, "the folder cannot be watched; it is looked at every second");
            }
            Err(_) => {}
        }
    }
}

fn version(found: &fs::Metadata) -> Version {
    (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

#[cfg(test)]
mod tests;
