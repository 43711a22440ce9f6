//! Reading and parsing of many files at once, on threads of its own.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use xxhash_rust::xxh3::xxh3_128;

use crate::source::manifest::{Manifest, Problem};

use super::read::{MAX_FILE_BYTES, ReadError, Stamp, read};

/// Stack of a parsing thread, in bytes. Only what is used of it costs memory; nesting is bounded so
/// that an eighth is enough.
const STACK: usize = 16 << 20;

/// Threads that parse at most.
const THREADS: usize = 4;

/// Reads the files below one folder.
#[derive(Debug)]
pub(super) struct Loader {
    /// The folder.
    pub(super) root: PathBuf,
    /// The most that a file may hold, in bytes.
    pub(super) most: u64,
    /// From a name and a text to objects.
    pub(super) parse: fn(&str, &[u8]) -> Manifest,
}

/// A file to be read: its path, and the hash of what it held when it was read last.
pub(super) type Wanted = (OsString, Option<u128>);

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The same bytes as before.
    Same(Option<Stamp>),
    /// Other bytes, parsed, with their hash.
    Parsed(Manifest, u128, Option<Stamp>),
    /// It is gone, or a link that leads nowhere.
    Gone,
    /// It cannot be read, and why; `again` where that may pass without the file being changed.
    Failed { problem: Problem, again: bool },
}

impl Loader {
    /// A loader as it is used, with the default limit.
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, most: MAX_FILE_BYTES, parse: crate::source::manifest::read }
    }

    /// Reads all files that are wanted, in no order.
    pub(super) fn load(&self, wanted: VecDeque<Wanted>) -> Vec<(OsString, Outcome)> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS).min(wanted.len());
        let todo = Mutex::new(wanted);
        let done = Mutex::new(Vec::new());
        let work = || {
            loop {
                // A binding of its own, so that the lock is not held while the file is read.
                let next = todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((path, hash)) = next else { return };
                let outcome = self.one(&path, hash);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((path, outcome));
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                let thread = thread::Builder::new().name("manifests".to_owned()).stack_size(STACK);
                if let Err(error) = thread.spawn_scoped(scope, work) {
                    tracing::warn!(%error, "no thread to parse manifests on, going on with fewer");
                }
            }
        });
        // What no thread could be had for.
        work();
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn one(&self, path: &OsStr, hash: Option<u128>) -> Outcome {
        let name = path.to_string_lossy();
        let (bytes, stamp) = match read(&self.root.join(path), self.most) {
            Ok(read) => read,
            Err(ReadError::Gone) => return Outcome::Gone,
            Err(error) => return failed(&name, &error),
        };
        let new = xxh3_128(&bytes);
        if hash == Some(new) {
            return Outcome::Same(stamp);
        }
        let parsed = catch_unwind(AssertUnwindSafe(|| (self.parse)(&name, &bytes)));
        let manifest = parsed.unwrap_or_else(|_| {
            let message = "it could not be read because of a defect in aether itself";
            let way_out = "report the file to the project, and simplify it meanwhile";
            Manifest::unreadable(Problem::file(&name, &name, message, way_out))
        });
        Outcome::Parsed(manifest, new, stamp)
    }
}

/// A file that cannot be read.
fn failed(name: &str, error: &ReadError) -> Outcome {
    let (way_out, again) = match error {
        ReadError::TooLarge { .. } => ("split it into several files", false),
        ReadError::NotAFile => ("put an ordinary file in its place, or name it otherwise", false),
        ReadError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ("let the user that aether runs as read it", true)
        }
        ReadError::Gone | ReadError::Io(_) => ("see to the file system", true),
    };
    Outcome::Failed { problem: Problem::file(name, name, error.to_string(), way_out), again }
}

/// A link that leads nowhere, for longer than it takes to turn it to somewhere else.
pub(super) fn dangling(path: &Path) -> Problem {
    let name = path.to_string_lossy();
    Problem::file(
        &name,
        &name,
        "it is a link that leads nowhere",
        "correct where it leads, or remove it",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn load(loader: &Loader, path: &str, hash: Option<u128>) -> Outcome {
        loader.load([(path.into(), hash)].into()).pop().unwrap().1
    }

    #[test]
    fn each_file_has_its_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("a.yaml"), "apiVersion: v1\nkind: Node\nmetadata: {name: x1}")
            .unwrap();
        std::fs::create_dir(root.join("d.yaml")).unwrap();
        let mut loader = Loader::new(root.to_owned());
        let Outcome::Parsed(manifest, hash, _) = load(&loader, "a.yaml", None) else { panic!() };
        assert_eq!(manifest.objects.len(), 1);
        assert!(matches!(load(&loader, "a.yaml", Some(hash)), Outcome::Same(_)));
        assert!(matches!(load(&loader, "b.yaml", None), Outcome::Gone));
        assert!(matches!(load(&loader, "d.yaml", None), Outcome::Failed { .. }));
        loader.most = 5;
        let Outcome::Failed { problem, .. } = load(&loader, "a.yaml", None) else { panic!() };
        assert!(problem.finding.message.contains("more than the 5"), "{problem:?}");
    }

    #[test]
    fn a_panic_while_parsing_costs_that_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "b.yaml", "c.yaml"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let mut loader = Loader::new(folder.path().to_owned());
        loader.parse = |name, bytes| {
            assert_ne!(name, "b.yaml", "a panic on purpose");
            crate::source::manifest::read(name, bytes)
        };
        let wanted = ["a.yaml", "b.yaml", "c.yaml"].map(|name| (name.into(), None));
        let done = loader.load(wanted.into());
        assert_eq!(done.len(), 3);
        let broken: Vec<_> = done
            .iter()
            .filter_map(|(path, outcome)| match outcome {
                Outcome::Parsed(manifest, _, _) => Some((path, &manifest.problems[0].finding)),
                _ => None,
            })
            .filter(|(_, finding)| finding.message.contains("defect"))
            .collect();
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].0, "b.yaml");
    }
}
