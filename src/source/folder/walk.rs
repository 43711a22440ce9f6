//! What is in the folder and its subfolders.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::read::{is_hidden, is_manifest};

/// How deep subfolders are looked into.
pub(super) const MAX_DEPTH: usize = 32;

/// The files of a folder. All paths are relative to it; its own is empty.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The files that hold manifests, links to such files included.
    pub(super) files: BTreeSet<OsString>,
    /// The folders that were looked into.
    pub(super) folders: BTreeSet<OsString>,
    /// Whether any of it is a link, so that a change elsewhere can change a file here.
    pub(super) linked: bool,
    /// The folders that could not be looked into, and why. What is known of their files stays.
    pub(super) failed: Vec<(PathBuf, String)>,
    /// The folders that lie too deep and were left out.
    pub(super) too_deep: Vec<PathBuf>,
    /// Which folder it is that has the path.
    pub(super) root: Option<Which>,
}

/// Which folder it is, whatever its path: its device and inode. Another one has the path when a
/// volume was mounted or unmounted there, or the folder was made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Which {
    device: u64,
    inode: u64,
}

/// Lists the folder `root`. Hidden files and folders are left out: a mounted ConfigMap keeps its
/// data in `..data`, and links to it under the visible names, so each file counts once. Links to
/// folders are followed, each folder once, by its own place before any link's.
///
/// `watch` is called for each folder *before* it is looked into, so that no change falls between.
///
/// # Errors
/// Where `root` itself cannot be listed.
pub(super) fn list(root: &Path, mut watch: impl FnMut(&Path)) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let mut visited = HashSet::new();
    let mut next = VecDeque::from([(PathBuf::new(), 0)]);
    let mut links = VecDeque::new();
    while let Some((relative, depth)) = next.pop_front().or_else(|| links.pop_front()) {
        let folder = root.join(&relative);
        let looked = std::fs::metadata(&folder).and_then(|metadata| {
            let which = Which { device: metadata.dev(), inode: metadata.ino() };
            listing.root.get_or_insert(which);
            if visited.insert(which) {
                watch(&folder);
                std::fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()
            } else {
                Ok(Vec::new())
            }
        });
        let entries = match looked {
            Ok(entries) => entries,
            Err(error) if relative.as_os_str().is_empty() => return Err(error),
            // It went while its parent was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                listing.failed.push((relative, error.to_string()));
                continue;
            }
        };
        let mut entries: Vec<_> =
            entries.into_iter().map(|entry| (entry.file_name(), entry)).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, entry) in entries {
            let path = relative.join(&name);
            if is_hidden(&path) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let link = kind.is_symlink();
            let is_folder = if link {
                listing.linked = true;
                std::fs::metadata(root.join(&path)).is_ok_and(|target| target.is_dir())
            } else {
                kind.is_dir()
            };
            match (is_folder, link) {
                (true, _) if depth == MAX_DEPTH => listing.too_deep.push(path),
                (true, true) => links.push_back((path, depth + 1)),
                (true, false) => next.push_back((path, depth + 1)),
                (false, _) if is_manifest(&path) => {
                    listing.files.insert(path.into_os_string());
                }
                (false, _) => {}
            }
        }
        listing.folders.insert(relative.into_os_string());
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use std::os::unix::fs::symlink;

    use super::*;

    fn files(root: &Path) -> Vec<String> {
        let listing = list(root, |_| ()).unwrap();
        listing.files.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    fn make(root: &Path, paths: &[&str]) {
        for path in paths {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn subfolders_count_and_hidden_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        make(
            root,
            &["b.yaml", "a/x.json", "a/b/y.yml", ".git/z.yaml", ".h.yaml", "a/.k/l.yaml", "n.txt"],
        );
        assert_eq!(files(root), ["a/b/y.yml", "a/x.json", "b.yaml"]);
        let mut watched = Vec::new();
        list(root, |path| watched.push(path.strip_prefix(root).unwrap().to_owned())).unwrap();
        assert_eq!(watched, [Path::new(""), Path::new("a"), Path::new("a/b")]);
    }

    #[test]
    fn a_mounted_config_map_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        make(root, &["..2026_11_30/a.yaml", "..2026_11_30/b.yaml"]);
        symlink("..2026_11_30", root.join("..data")).unwrap();
        symlink("..data/a.yaml", root.join("a.yaml")).unwrap();
        symlink("..data/b.yaml", root.join("b.yaml")).unwrap();
        assert_eq!(files(root), ["a.yaml", "b.yaml"]);
        assert!(list(root, |_| ()).unwrap().linked);
    }

    #[test]
    fn linked_folders_are_followed_once_and_never_in_circles() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = folder.path();
        make(root, &["z/a.yaml"]);
        make(elsewhere.path(), &["b.yaml"]);
        symlink("z", root.join("a")).unwrap();
        symlink("..", root.join("z/up")).unwrap();
        symlink(elsewhere.path(), root.join("other")).unwrap();
        symlink("nowhere", root.join("c.yaml")).unwrap();
        assert_eq!(files(root), ["c.yaml", "other/b.yaml", "z/a.yaml"]);
    }

    #[test]
    fn depth_is_bounded_from_both_sides() {
        let folder = tempfile::tempdir().unwrap();
        let deep = |depth: usize| format!("{}a.yaml", "d/".repeat(depth));
        make(folder.path(), &[&deep(MAX_DEPTH), &deep(MAX_DEPTH + 1)]);
        assert_eq!(files(folder.path()), [deep(MAX_DEPTH)]);
        assert_eq!(list(folder.path(), |_| ()).unwrap().too_deep.len(), 1);
    }

    #[test]
    fn a_root_that_cannot_be_listed_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(list(&folder.path().join("gone"), |_| ()).is_err());
        make(folder.path(), &["a.yaml"]);
        assert!(list(&folder.path().join("a.yaml"), |_| ()).is_err());
    }
}
