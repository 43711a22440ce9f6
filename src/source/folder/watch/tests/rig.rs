//! A followed folder for tests.

use std::path::Path;

use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::*;
use crate::source::folder::testing::{Taken, write};

/// A folder that is followed, and what was learned of it.
pub(super) struct Rig {
    folder: TempDir,
    pub(super) updates: Receiver<Update>,
    pub(super) task: JoinHandle<()>,
    pub(super) taken: Taken,
}

impl Rig {
    pub(super) async fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(folder.path(), path, text);
        }
        let (sender, updates) = mpsc::channel(4);
        let task = tokio::spawn(watch(folder.path().to_owned(), sender).unwrap());
        let mut rig = Self { folder, updates, task, taken: Taken::default() };
        let first = timeout(Duration::from_secs(10), rig.updates.recv()).await.unwrap().unwrap();
        rig.taken.update(first);
        rig
    }

    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Takes updates until it is so.
    pub(super) async fn until(&mut self, so: impl Fn(&Taken) -> bool) {
        let limit = Instant::now() + Duration::from_secs(10);
        while !so(&self.taken) {
            let left = limit.saturating_duration_since(Instant::now());
            match timeout(left, self.updates.recv()).await {
                Ok(update) => drop(self.taken.update(update.expect("the watch ended"))),
                Err(late) => {
                    panic!("{late}, still {} and {}", self.taken.show(), self.taken.said())
                }
            }
        }
    }

    pub(super) async fn shows(&mut self, expected: &str) {
        self.until(|taken| taken.show() == expected).await;
    }

    pub(super) async fn value(&mut self, name: &str, value: u32) {
        let value = format!("v{value}");
        self.until(|taken| taken.value(name).as_ref() == Some(&value)).await;
    }

    /// Takes what comes within a time, and holds that these objects are never gone.
    pub(super) async fn never_without(&mut self, names: &[&str], time: Duration) {
        let limit = Instant::now() + time;
        loop {
            for name in names {
                assert!(self.taken.value(name).is_some(), "{name} is gone: {}", self.taken.said());
            }
            let left = limit.saturating_duration_since(Instant::now());
            match timeout(left, self.updates.recv()).await {
                Ok(update) => drop(self.taken.update(update.expect("the watch ended"))),
                Err(_) => return,
            }
        }
    }
}
