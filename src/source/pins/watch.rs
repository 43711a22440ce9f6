//! Follows the folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};

use super::look::look;
use super::register::Register;
use super::{PinsError, mounts, pins};
use crate::model::Pins;

/// How often the folder is looked at though nothing was told of it. A look costs a system call or
/// two for each pod.
const PERIOD: Duration = Duration::from_secs(1);

/// How long it is left alone after a look, so that a burst of mounts is one look.
pub(super) const REST: Duration = Duration::from_millis(20);

/// How long a namespace that took the place of another is left out: long enough for the proxy to
/// hear that the listener is gone.
const APART: Duration = Duration::from_millis(500);

/// Follows a folder of pins. The receiver holds what was seen last: `None` while there was no folder
/// yet. When the folder cannot be read any more, or is gone, what was seen last stays. The future
/// ends when there is no receiver left.
pub fn watch(
    folder: PathBuf,
) -> (watch::Receiver<Option<Arc<Pins>>>, impl Future<Output = ()> + Send + 'static) {
    let mut follower = Follower::new(folder);
    // The first snapshot is to know the pins that there are.
    let first = match follower.look() {
        Look::Found(first) => first,
        Look::Stays => None,
    };
    let (sender, receiver) = watch::channel(first);
    (receiver, follow(follower, sender))
}

struct Follower {
    folder: PathBuf,
    register: Register,
    /// What is told of the files of the folder, and of which folder.
    watcher: Option<((u64, u64), RecommendedWatcher)>,
    told: Arc<Notify>,
    /// What was wrong at the last look, so that it is said once.
    trouble: Option<String>,
    seen: bool,
    again: bool,
}

/// What a look came to.
enum Look {
    /// What was seen before stays.
    Stays,
    /// What there is; `None` where there was no folder yet.
    Found(Option<Arc<Pins>>),
}

impl Follower {
    fn new(folder: PathBuf) -> Self {
        let register = Register::default();
        let (told, trouble) = (Arc::default(), None);
        Self { folder, register, watcher: None, told, trouble, seen: false, again: false }
    }

    /// Looks at the folder.
    fn look(&mut self) -> Look {
        // Before the look, so that nothing falls between the two.
        self.watch();
        let found = match look(&self.folder) {
            Ok(found) => found,
            Err(cause) => {
                let error = PinsError { folder: self.folder.clone(), cause };
                self.complain(Some(format!("{error}; what was seen last stays")));
                return Look::Stays;
            }
        };
        let Some(found) = found else {
            let gone = format!(
                "the folder {} is gone; its pins stay until it is back",
                self.folder.display()
            );
            self.complain(self.seen.then_some(gone));
            return if self.seen { Look::Stays } else { Look::Found(None) };
        };
        self.complain(None);
        if !std::mem::replace(&mut self.seen, true) {
            info!(folder = %self.folder.display(), pinned = found.len(), "node proxies are served by pinned network namespaces");
        }
        let (uids, again) = self.register.take(found);
        self.again = again;
        Look::Found(Some(Arc::new(pins(&self.folder, uids))))
    }

    fn complain(&mut self, trouble: Option<String>) {
        if let Some(text) = trouble.as_ref().filter(|text| Some(*text) != self.trouble.as_ref()) {
            warn!("{text}");
        }
        self.trouble = trouble;
    }

    /// Has the files of the folder watched, unless it is that folder already.
    fn watch(&mut self) {
        let Some(which) = which(&self.folder) else {
            self.watcher = None;
            return;
        };
        if self.watcher.as_ref().is_some_and(|(watched, _)| *watched == which) {
            return;
        }
        let told = self.told.clone();
        // To look at the folder is an event too, and must not lead to the next look.
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| event.kind.is_access()) {
                told.notify_one();
            }
        });
        let watching = watcher.and_then(|mut watcher| {
            watcher.watch(&self.folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        match watching {
            Ok(watcher) => self.watcher = Some((which, watcher)),
            Err(error) => debug!(%error, "the folder of pins is looked at once a second instead"),
        }
    }
}

/// Which folder has a path.
fn which(folder: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
    Some((found.dev(), found.ino()))
}

async fn follow(mut follower: Follower, sender: watch::Sender<Option<Arc<Pins>>>) {
    let told = follower.told.clone();
    if let Err(error) = mounts::listen(&told) {
        debug!(%error, "mounts are not told of: the pins are looked at once a second instead");
    }
    loop {
        let wait = if follower.again { APART } else { PERIOD };
        tokio::select! {
            () = sender.closed() => return,
            // What is left out for a while must not be brought back too soon.
            () = told.notified(), if !follower.again => {}
            () = tokio::time::sleep(wait) => {}
        }
        let looked = tokio::task::spawn_blocking(move || {
            let found = follower.look();
            (follower, found)
        });
        let Ok((back, found)) = looked.await else { return };
        follower = back;
        if let Look::Found(found) = found {
            sender.send_if_modified(|now| {
                let changed = *now != found;
                if changed {
                    let pinned = found.as_ref().map_or(0, |pins| pins.uids.len());
                    debug!(pinned, "the pinned network namespaces changed");
                    *now = found;
                }
                changed
            });
        }
        tokio::time::sleep(REST).await;
    }
}

#[cfg(test)]
mod tests;
