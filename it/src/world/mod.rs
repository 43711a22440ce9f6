//! A folder of manifests that a test writes and changes.

mod objects;
mod served;

pub use objects::Object;
pub use served::{ServedPort, served};

use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use crate::places;

/// The folder. It goes with its value.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
}

impl World {
    /// An empty one.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: places::folder()? })
    }

    /// One with the manifests of this folder (its files alone).
    pub fn copy_of(manifests: &Path) -> Result<Self> {
        let world = Self::new()?;
        for entry in std::fs::read_dir(manifests)? {
            let entry = entry?;
            std::fs::copy(entry.path(), world.path().join(entry.file_name()))?;
        }
        Ok(world)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes or replaces the file `<name>.yaml` with these objects, a document each.
    pub fn put(&self, name: &str, objects: &[Object]) -> Result<()> {
        let documents: Vec<String> = objects.iter().map(Object::document).collect();
        self.put_text(&format!("{name}.yaml"), &documents.join("---\n"))
    }

    /// Writes or replaces a file with this text. A reader sees the old text or the new one, never a part: it is
    /// written beside the folder and renamed into it.
    pub fn put_text(&self, file: &str, text: &str) -> Result<()> {
        let fresh = tempfile::Builder::new().prefix(".fresh-").tempfile_in(self.path())?;
        std::fs::write(fresh.path(), text)?;
        fresh.persist(self.file(file))?;
        Ok(())
    }

    /// Removes the file `<name>.yaml`.
    pub fn remove(&self, name: &str) -> Result<()> {
        Ok(std::fs::remove_file(self.file(&format!("{name}.yaml")))?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
