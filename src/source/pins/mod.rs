//! Pinned network namespaces: a folder with a file for each pod, named by its uid.
//!
//! The folder is the register of the pods that the node proxies of this machine serve. A file counts
//! while a namespace is mounted on it, so whoever pins may make the file first and mount then, and
//! unmount first and remove then. The folder may come later than this process.

mod look;
mod mounts;
mod register;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::Pins;

pub use watch::watch;

/// Why a folder of pins cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the pinned network namespaces in {folder:?} cannot be read: {cause}; make the folder visible \
     to this process, or name another one with --netns-dir"
)]
pub struct PinsError {
    folder: PathBuf,
    cause: io::Error,
}

/// The pins that there are now; `None` where there is no folder.
///
/// # Errors
/// Where the folder cannot be read.
pub fn load(folder: &Path) -> Result<Option<Arc<Pins>>, PinsError> {
    let error = |cause| PinsError { folder: folder.to_owned(), cause };
    let seen = look::look(folder).map_err(error)?;
    Ok(seen.map(|seen| Arc::new(pins(folder, seen.into_keys().collect()))))
}

fn pins(folder: &Path, uids: std::collections::BTreeSet<Arc<str>>) -> Pins {
    Pins { folder: folder.to_string_lossy().into(), uids }
}
