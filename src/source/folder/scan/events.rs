//! What the watcher's events ask the scanner to look at.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};
use std::time::Instant;

use crate::source::folder::inbox::Work;
use crate::source::folder::read::is_manifest;

use super::{GRACE, QUIET, Scanner};

/// What an event at a path asks for.
enum Look {
    Read,
    Everything,
    Nothing,
}

impl Scanner {
    /// Sorts out events: which files are to be read, and whether it takes a look at everything.
    pub(super) fn note(&mut self, work: Work, now: Instant) -> (BTreeSet<OsString>, bool) {
        let mut touched = BTreeSet::new();
        let mut everything = work.rescan;
        let told = !work.settled.is_empty() || !work.writing.is_empty();
        // Where there are links, an event at one path may be a change of the file at another.
        everything |= told && self.linked;
        for path in work.writing {
            let Ok(path) = path.strip_prefix(&self.loader.root) else { continue };
            // Links come complete.
            let linked = std::fs::symlink_metadata(self.loader.root.join(path))
                .is_ok_and(|metadata| metadata.is_symlink() || metadata.nlink() > 1);
            if linked {
                everything |= matches!(self.look(path, now), Look::Everything);
                touched.insert(path.as_os_str().to_owned());
            } else if is_manifest(path) {
                self.writing.insert(path.as_os_str().to_owned(), now + QUIET);
            }
        }
        for path in work.settled {
            let Ok(path) = path.strip_prefix(&self.loader.root) else {
                everything = true;
                continue;
            };
            self.writing.remove(path.as_os_str());
            match self.look(path, now) {
                Look::Everything => everything = true,
                Look::Read => drop(touched.insert(path.as_os_str().to_owned())),
                Look::Nothing => {}
            }
        }
        let quiet: Vec<_> = self
            .writing
            .iter()
            .filter(|(_, due)| **due <= now)
            .map(|(path, _)| path.clone())
            .collect();
        for path in quiet {
            self.writing.remove(&path);
            touched.insert(path);
        }
        touched.retain(|path| is_manifest(Path::new(path)));
        (touched, everything)
    }

    fn look(&mut self, path: &Path, now: Instant) -> Look {
        if path.as_os_str().is_empty() {
            return Look::Everything;
        }
        let hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        if path.components().any(hidden) {
            return Look::Nothing;
        }
        match std::fs::symlink_metadata(self.loader.root.join(path)) {
            Ok(metadata) if metadata.is_file() && is_manifest(path) => Look::Read,
            Ok(metadata) if metadata.is_file() => Look::Nothing,
            Ok(metadata) if metadata.is_dir() || metadata.is_symlink() => Look::Everything,
            Ok(_) if is_manifest(path) => Look::Read,
            Ok(_) => Look::Nothing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.folders.contains(path.as_os_str()) {
                    return Look::Everything;
                }
                if self.seen.contains_key(path.as_os_str()) {
                    self.missing.entry(path.as_os_str().to_owned()).or_insert(now + GRACE);
                }
                Look::Nothing
            }
            Err(_) => Look::Everything,
        }
    }
}
