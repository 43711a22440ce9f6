//! What is wrong with the folder itself, and the watching of it.

use std::io;
use std::path::{Path, PathBuf};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::model::{Finding, ObjectRef, Reason, Severity};

use super::walk::MAX_DEPTH;

fn finding(path: &Path, severity: Severity, message: String, way_out: &str) -> Finding {
    Finding {
        object: ObjectRef::new("Folder", "", path.to_string_lossy()),
        severity,
        reason: Reason::UnreadableFile,
        origin: None,
        field: String::new(),
        message,
        way_out: way_out.to_owned(),
    }
}

/// The folder of manifests cannot be listed.
pub(super) fn of_root(root: &Path, error: &io::Error) -> Finding {
    let message = format!(
        "the folder of manifests cannot be read ({error}), so all objects are kept as they last were"
    );
    finding(root, Severity::Problem, message, "bring it back, and let aether's user list it")
}

/// Another folder has the path of the folder of manifests, and there is no manifest in it.
pub(super) fn of_another(root: &Path) -> Finding {
    let message = "another folder than before is there, as after a volume was unmounted, and it \
                   holds no manifest, so all objects are kept as they last were";
    let way_out = "mount the volume again; if all objects are to go, put a file into the folder, \
                   such as a nothing.yaml that holds a comment";
    finding(root, Severity::Problem, message.to_owned(), way_out)
}

/// Subfolders cannot be listed, or lie too deep.
pub(super) fn of_folders(
    root: &Path,
    failed: &[(PathBuf, String)],
    too_deep: &[PathBuf],
) -> Vec<Finding> {
    let failed = failed.iter().map(|(path, error)| {
        let message =
            format!("it cannot be read ({error}), so what it held is kept as it last was");
        let way_out = "let the user that aether runs as list it";
        finding(&root.join(path), Severity::Problem, message, way_out)
    });
    let too_deep = too_deep.iter().map(|path| {
        let message = format!("it lies more than {MAX_DEPTH} folders deep and is left out");
        finding(&root.join(path), Severity::Problem, message, "move it up")
    });
    failed.chain(too_deep).collect()
}

/// Watches folders one by one: each is watched before it is listed, which a recursive watch does
/// not do for a folder that is new.
#[derive(Debug)]
pub(super) enum Watcher {
    /// Nothing is to be watched: the folder is read once.
    Once,
    /// Folders are watched.
    On(RecommendedWatcher, Option<String>),
    /// The system gives no watcher, and why.
    Off(String),
}

impl Watcher {
    /// Sees to it that this folder is watched. To ask again costs little, and heals a watch that
    /// ended with an earlier folder of the name.
    pub(super) fn watch(&mut self, folder: &Path) {
        if let Self::On(watcher, failure) = self
            && let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive)
            && folder.exists()
        {
            failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// Whether all folders are watched that were asked for.
    pub(super) fn works(&self) -> bool {
        !matches!(self, Self::On(_, Some(_)) | Self::Off(_))
    }

    /// What stands in the way, if anything.
    pub(super) fn finding(&self, root: &Path) -> Option<Finding> {
        let (Self::On(_, Some(why)) | Self::Off(why)) = self else { return None };
        let message = format!("not all of it can be watched ({why}), so it is read every 2 s");
        let way_out = "raise the limits fs.inotify.max_user_watches and max_user_instances";
        Some(finding(root, Severity::Warning, message, way_out))
    }

    /// Forgets what stood in the way, before everything is watched again.
    pub(super) fn begin(&mut self) {
        if let Self::On(_, failure) = self {
            *failure = None;
        }
    }
}
