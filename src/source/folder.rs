//! PLACEHOLDER of the cli branch: dropped at the merge.
#![allow(missing_docs)]
use std::path::Path;

use super::Update;

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

pub fn load(dir: &Path) -> Result<Update, FolderError> {
    std::fs::read_dir(dir)?;
    Ok(Update::default())
}
