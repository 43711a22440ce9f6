//! A folder of manifests, read once or followed.
//!
//! Files named `.yaml`, `.yml` and `.json` count, in subfolders too, hidden ones apart. Of an
//! object that stands in several, the file later in the byte order of relative paths counts. What
//! cannot be read is left alone and reported, and the last good form of what it held is kept for
//! as long as the file is there.

mod inbox;
mod load;
mod read;
mod scan;
mod table;
#[cfg(test)]
mod testing;
mod trouble;
mod walk;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Update;
use inbox::Work;
use load::Loader;
use scan::Scanner;
use trouble::Watcher;

pub use watch::watch;

/// Why a folder of manifests cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Nothing is there.
    #[error("there is no folder {0:?}: create it, or correct the path of the manifests")]
    Missing(PathBuf),
    /// Something else is there.
    #[error("{0:?} is no folder: name the folder that holds the manifests, not one of them")]
    NotAFolder(PathBuf),
    /// It may not be listed.
    #[error("the folder {0:?} may not be listed: let the user that aether runs as read it (r-x)")]
    Denied(PathBuf),
    /// The system refuses for another reason.
    #[error("the folder {path:?} cannot be read: {cause}; see to the file system")]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

impl FolderError {
    fn of(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing(path),
            io::ErrorKind::NotADirectory => Self::NotAFolder(path),
            io::ErrorKind::PermissionDenied => Self::Denied(path),
            _ => Self::Io { path, cause: error },
        }
    }
}

/// Reads a folder once, whole. What could not be read of it is in the findings.
///
/// # Errors
/// Where there is no such folder, or it cannot be listed.
pub fn load(dir: &Path) -> Result<Update, FolderError> {
    check(dir)?;
    let mut scanner = Scanner::new(Loader::new(dir.to_owned()), Watcher::Once);
    match scanner.step(Work::default(), Instant::now()) {
        Some(update) => Ok(update),
        // It went between the two looks.
        None => Err(FolderError::of(dir, io::ErrorKind::NotFound.into())),
    }
}

/// Whether the folder can be listed.
fn check(dir: &Path) -> Result<(), FolderError> {
    std::fs::read_dir(dir).map(drop).map_err(|error| FolderError::of(dir, error))
}

#[cfg(test)]
mod tests;
