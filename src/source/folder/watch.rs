//! Follows a folder: waits for events, lets the scanner look, and passes on what changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::source::Update;

use super::inbox::Inbox;
use super::load::Loader;
use super::scan::Scanner;
use super::trouble::Watcher;
use super::{FolderError, check};

/// Follows a folder. The first update is its complete state, and every later one a batch of
/// changes as they come, without a fixed delay. The future ends when the receiver is dropped, and
/// for no other reason: whatever becomes of the folder later is logged and reported in
/// [`Update::findings`], the last good state is kept, and reading is tried again. Files are read
/// and parsed on threads of their own.
///
/// # Errors
/// Where there is no such folder, or it cannot be listed; before anything has started.
pub fn watch(
    dir: PathBuf,
    updates: mpsc::Sender<Update>,
) -> Result<impl Future<Output = ()> + Send + 'static, FolderError> {
    check(&dir)?;
    let inbox = Arc::new(Inbox::default());
    let events = inbox.clone();
    let watcher = match notify::recommended_watcher(move |event| events.put(event)) {
        Ok(watcher) => Watcher::On(watcher, None),
        Err(error) => Watcher::Off(error.to_string()),
    };
    // Events name absolute paths.
    let root = std::path::absolute(&dir).unwrap_or(dir);
    let scanner = Scanner::new(Loader::new(root), watcher);
    Ok(follow(Arc::new(Mutex::new(scanner)), inbox, updates))
}

async fn follow(scanner: Arc<Mutex<Scanner>>, inbox: Arc<Inbox>, updates: mpsc::Sender<Update>) {
    loop {
        let (looking, work) = (scanner.clone(), inbox.take());
        let looked = tokio::task::spawn_blocking(move || {
            let mut scanner = lock(&looking);
            let update = scanner.step(work, Instant::now());
            (update, scanner.due())
        });
        let (update, due) = match looked.await {
            Ok(looked) => looked,
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, "a defect while reading the folder, reading it anew");
                let mut scanner = lock(&scanner);
                scanner.distrust(Instant::now());
                (None, scanner.due())
            }
        };
        if let Some(update) = update
            && updates.send(update).await.is_err()
        {
            return;
        }
        let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            () = updates.closed() => return,
            () = inbox.changed() => {}
            () = sleep_until(due.into()) => {}
        }
    }
}

fn lock(scanner: &Mutex<Scanner>) -> MutexGuard<'_, Scanner> {
    scanner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
