//! Files that are read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::info;

use super::{Unix, unix_now};

/// How long changes gather: what belongs together is written as several files.
const GATHER: Duration = Duration::from_millis(100);
/// How often it is looked at although nothing is heard: not every file system tells of changes.
const LOOK: Duration = Duration::from_secs(10);

/// What is read from files, and good until a time.
pub trait Material: Clone + Send + 'static {
    /// Until when it is good, in seconds since 1970.
    fn until(&self) -> Unix;
    /// Whether another one says the same.
    fn same(&self, other: &Self) -> bool;
}

/// What became of the files.
#[derive(Debug)]
pub enum News<'a, T, E> {
    /// They are good.
    Good {
        /// What they say.
        read: &'a T,
        /// How long it is good for, in seconds.
        left: u64,
        /// Whether it is another than before; if not, they were broken meanwhile.
        new: bool,
    },
    /// They are broken. It is told once for each reason.
    Broken {
        /// Why.
        error: &'a E,
        /// Whether the last good ones have expired.
        expired: bool,
    },
}

/// Reads these files again and again until it is dropped, and tells what becomes of them. `first` is
/// what they said at the start.
pub async fn follow<T, E>(
    paths: &[&Path],
    first: T,
    read: impl Fn(Unix) -> Result<T, E> + Clone + Send + 'static,
    mut tell: impl FnMut(News<'_, T, E>),
) where
    T: Material,
    E: PartialEq + Clone + Send + 'static,
{
    let heard = Arc::new(Notify::new());
    // Dropped with us; the folders, since a file that is replaced is another one.
    let _watcher = watcher(paths, heard.clone());
    let mut last = first;
    let mut told = None;
    loop {
        if timeout(LOOK, heard.notified()).await.is_ok() {
            sleep(GATHER).await;
        }
        let (read, wall) = (read.clone(), unix_now());
        let Ok(now) = tokio::task::spawn_blocking(move || read(wall)).await else { continue };
        match now {
            Ok(now) => {
                let new = !now.same(&last);
                if new || told.is_some() {
                    last = now;
                    told = None;
                    tell(News::Good { read: &last, left: last.until().saturating_sub(wall), new });
                }
            }
            Err(error) => {
                let expired = last.until() <= wall;
                if told.as_ref() != Some(&(error.clone(), expired)) {
                    tell(News::Broken { error: &error, expired });
                    told = Some((error, expired));
                }
            }
        }
    }
}

/// Hears of changes in the folders of these files. Without it they are looked at now and then.
fn watcher(paths: &[&Path], heard: Arc<Notify>) -> Option<RecommendedWatcher> {
    let hear = move |event: notify::Result<notify::Event>| {
        // That we read them ourselves is no news.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            heard.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(hear).ok()?;
    let mut folders: Vec<PathBuf> = paths.iter().map(|path| folder(path)).collect();
    folders.sort();
    folders.dedup();
    for folder in folders {
        if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
            info!(%error, folder = %folder.display(), "it is looked at every {LOOK:?} instead");
        }
    }
    Some(watcher)
}

fn folder(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new(".")).to_owned()
}
