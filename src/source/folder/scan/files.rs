//! Which files the scanner reads, and what it makes of what it found.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Instant;

use crate::source::folder::load::{Outcome, dangling};
use crate::source::folder::read::Stamp;
use crate::source::folder::walk::Listing;
use crate::source::manifest::{Manifest, Problem};

use super::{GRACE, Scanner, Seen};

impl Scanner {
    /// Whether a file must be read to know what it holds. One that is being written will tell.
    pub(super) fn wants(&self, path: &OsStr, periodic: bool) -> bool {
        if self.writing.contains_key(path) && !periodic {
            return false;
        }
        let Some(stamp) = self.seen.get(path).and_then(|seen| seen.stamp.as_ref()) else {
            return true;
        };
        let metadata = std::fs::metadata(self.loader.root.join(path));
        self.missing.contains_key(path) || !metadata.is_ok_and(|m| Stamp::of(&m) == *stamp)
    }

    /// Notes which files are not there any more, and forgets those that have been gone for long.
    pub(super) fn forget(&mut self, listing: &Listing, now: Instant) {
        let unknown = |path: &OsStr| {
            listing.failed.iter().any(|(folder, _)| Path::new(path).starts_with(folder))
        };
        let gone: Vec<OsString> = self
            .seen
            .keys()
            .filter(|path| !listing.files.contains(*path) && !unknown(path))
            .cloned()
            .collect();
        for path in gone {
            let due = *self.missing.entry(path.clone()).or_insert(now + GRACE);
            if due <= now {
                self.missing.remove(&path);
                self.seen.remove(&path);
                self.table.remove(&path);
            }
        }
        self.missing.retain(|path, _| !unknown(path));
        self.writing.retain(|path, _| listing.files.contains(path));
    }

    /// Reads files and gives whether any of them is to be tried again soon.
    pub(super) fn read(&mut self, paths: BTreeSet<OsString>, now: Instant) -> bool {
        let wanted: VecDeque<_> = paths
            .into_iter()
            .map(|path| {
                let hash = self.seen.get(&path).and_then(|seen| seen.hash);
                (path, hash)
            })
            .collect();
        if wanted.is_empty() {
            return false;
        }
        let mut failed = false;
        for (path, outcome) in self.loader.load(wanted) {
            let seen = match outcome {
                Outcome::Same(stamp) => {
                    let hash = self.seen.get(&path).and_then(|seen| seen.hash);
                    Seen { stamp, hash }
                }
                Outcome::Parsed(manifest, hash, stamp) => {
                    self.table.replace(&path, manifest);
                    Seen { stamp, hash: Some(hash) }
                }
                Outcome::Failed { problem, again } => {
                    failed |= again;
                    self.problem(&path, problem);
                    Seen::default()
                }
                Outcome::Gone => {
                    self.gone(&path, now);
                    continue;
                }
            };
            self.missing.remove(&path);
            self.seen.insert(path, seen);
        }
        failed
    }

    /// A file that was listed is gone by now, or its link leads nowhere.
    fn gone(&mut self, path: &OsStr, now: Instant) {
        let known = self.seen.contains_key(path);
        let due =
            if known { *self.missing.entry(path.to_owned()).or_insert(now + GRACE) } else { now };
        // What went altogether is forgotten when the folder is listed next.
        let link = std::fs::symlink_metadata(self.loader.root.join(path)).is_ok();
        if due <= now && link {
            self.missing.remove(path);
            self.problem(path, dangling(Path::new(path)));
            self.seen.insert(path.to_owned(), Seen::default());
        }
    }

    fn problem(&mut self, path: &OsStr, problem: Problem) {
        self.table.replace(path, Manifest::unreadable(problem));
    }
}
