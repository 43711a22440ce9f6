//! Looks at the folder when asked, at all of it or only where something happened, and says what
//! that changes. Blocking; time is handed in.

mod events;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use crate::model::Finding;
use crate::source::Update;

use super::inbox::Work;
use super::load::Loader;
use super::read::Stamp;
use super::table::Table;
use super::trouble::{self, Watcher};
use super::walk::{Which, list};

/// How long a file must be gone before its objects go. Editors and version control take a file
/// away and put the new one in its place a moment later.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// How long a file that is written must be quiet before it is read, where nothing tells the end.
pub(super) const QUIET: Duration = Duration::from_millis(250);

/// How often everything is looked at though nothing was told; some file systems tell nothing.
pub(super) const PERIOD: Duration = Duration::from_secs(30);

/// The same where the folder cannot be watched.
pub(super) const UNWATCHED: Duration = Duration::from_secs(2);

/// The folder as it was seen last.
pub(super) struct Scanner {
    pub(super) loader: Loader,
    watcher: Watcher,
    table: Table,
    /// Every file that was read, or that could not be.
    seen: BTreeMap<OsString, Seen>,
    /// Files that somebody writes, and when they are read at the latest.
    writing: BTreeMap<OsString, Instant>,
    /// Files that are not there any more, and when that is believed.
    missing: BTreeMap<OsString, Instant>,
    folders: BTreeSet<OsString>,
    /// The folder that was read last, and that has the path unless another one took it.
    root: Option<Which>,
    linked: bool,
    trouble: Vec<Finding>,
    /// How often in a row something could not be read.
    failures: u32,
    next_scan: Option<Instant>,
    /// Whether there was any object at the last update.
    held: bool,
    /// The findings of the last update; none before the first complete look.
    said: Option<Vec<Finding>>,
}

#[derive(Debug, Default)]
struct Seen {
    stamp: Option<Stamp>,
    hash: Option<u128>,
}

impl Scanner {
    pub(super) fn new(loader: Loader, watcher: Watcher) -> Self {
        Self {
            loader,
            watcher,
            table: Table::default(),
            seen: BTreeMap::new(),
            writing: BTreeMap::new(),
            missing: BTreeMap::new(),
            folders: BTreeSet::new(),
            root: None,
            linked: false,
            trouble: Vec::new(),
            failures: 0,
            next_scan: None,
            held: false,
            said: None,
        }
    }

    /// When [`step`](Self::step) is due though nothing happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let waiting = self.writing.values().chain(self.missing.values()).copied();
        waiting.chain(self.next_scan).min()
    }

    /// Looks at what happened, and gives an update where that changes anything. The first update
    /// is complete; until the folder could be read there is none.
    pub(super) fn step(&mut self, work: Work, now: Instant) -> Option<Update> {
        let periodic = self.next_scan.is_none_or(|due| due <= now);
        let (touched, everything) = self.note(work, now);
        let everything = everything || periodic || self.missing.values().any(|due| *due <= now);
        if everything {
            match self.scan(&touched, periodic, now) {
                Ok(true) => {}
                Ok(false) => self.keep(trouble::of_another(&self.loader.root), now),
                Err(error) => self.keep(trouble::of_root(&self.loader.root, &error), now),
            }
        } else {
            let failed = self.read(touched, now);
            if failed {
                self.try_again(now);
            }
        }
        self.update()
    }

    /// Everything is to be read again: after a defect, what is known may be wrong.
    pub(super) fn distrust(&mut self, now: Instant) {
        for seen in self.seen.values_mut() {
            *seen = Seen::default();
        }
        self.try_again(now);
    }

    fn update(&mut self) -> Option<Update> {
        if self.said.is_none() && self.folders.is_empty() {
            return None;
        }
        let held = self.held;
        let changes = self.table.take_changes();
        self.held = !self.table.is_empty();
        if held && !self.held {
            let path = self.loader.root.display();
            tracing::info!(%path, "the folder holds no object any more, so nothing is left to serve");
        }
        let mut findings = self.table.findings(|path| self.missing.contains_key(path));
        findings.extend(self.trouble.iter().cloned());
        if changes.is_empty() && self.said.as_ref() == Some(&findings) {
            return None;
        }
        self.said = Some(findings.clone());
        Some(Update { changes, findings })
    }

    /// Looks at everything, unless there is nothing to look at because another folder took the
    /// place of the one that was read: an empty mount point is no order to remove all objects.
    fn scan(
        &mut self,
        touched: &BTreeSet<OsString>,
        periodic: bool,
        now: Instant,
    ) -> io::Result<bool> {
        let root = self.loader.root.clone();
        let watcher = &mut self.watcher;
        watcher.begin();
        let listing = list(&root, |folder| watcher.watch(folder))?;
        let another = self.root.is_some() && self.root != listing.root;
        if another && listing.files.is_empty() && !self.table.is_empty() {
            return Ok(false);
        }
        self.root = listing.root;
        self.forget(&listing, now);
        let wanted = listing
            .files
            .iter()
            .filter(|path| touched.contains(*path) || self.wants(path, periodic))
            .cloned()
            .collect();
        self.folders = listing.folders;
        self.linked = listing.linked;
        self.trouble = trouble::of_folders(&root, &listing.failed, &listing.too_deep);
        self.trouble.extend(self.watcher.finding(&root));
        let failed = self.read(wanted, now) || !listing.failed.is_empty();
        if failed {
            self.try_again(now);
        } else {
            self.failures = 0;
            let period = if self.watcher.works() { PERIOD } else { UNWATCHED };
            self.next_scan = Some(now + period);
        }
        Ok(true)
    }

    /// The folder itself is in trouble: everything stays as it was.
    fn keep(&mut self, trouble: Finding, now: Instant) {
        if self.said.is_none() && self.failures == 0 {
            // Before the first update there is nobody yet to take the finding.
            tracing::warn!("{trouble}");
        }
        self.trouble = vec![trouble];
        // Nothing is believed gone while the folder itself is.
        self.missing.clear();
        self.try_again(now);
    }

    fn try_again(&mut self, now: Instant) {
        let wait = Duration::from_millis(100) * 2u32.pow(self.failures.min(5));
        self.failures = self.failures.saturating_add(1);
        let due = now + wait;
        self.next_scan =
            Some(self.next_scan.filter(|next| *next > now).map_or(due, |next| next.min(due)));
    }
}

#[cfg(test)]
mod tests;
