//! The file on disk: replaced whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::model::{Records, RecordsFile};

/// Everybody may read it: the resolver runs as another user.
const MODE: u32 = 0o644;

/// Why the file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}: {source}; {}", path.display(), way_out(source))]
pub struct StoreError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space on that file system"
        }
        io::ErrorKind::ReadOnlyFilesystem => "mount that file system writable",
        io::ErrorKind::PermissionDenied => "let this process's user write to that folder",
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            "name a file in a folder with --mesh-dns-snapshot"
        }
        io::ErrorKind::WouldBlock => "another process writes it at this moment",
        _ => "it is tried again",
    }
}

/// What tells one version of a file from another.
type Version = (u64, u64, u64, i64, i64);

/// One snapshot file, and what was written to it last.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    last: Option<(Version, RecordsFile)>,
}

impl SnapshotFile {
    /// The file at this path, which need not be there.
    pub fn new(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, last: None }
    }

    /// Writes records that were vouched for at this time (Unix seconds), and returns the content.
    /// It goes on from what the file holds, whoever wrote that: the generation never falls.
    ///
    /// The content goes to a temporary file in the same folder, which is synced and then takes the
    /// place of the old one, and the folder is synced after that: whenever the power fails, a whole
    /// file is there. Two writers exclude each other by a lock on the temporary file, which has
    /// always the same name, so that one that was killed leaves nothing behind for long.
    ///
    /// # Errors
    /// Where the system refuses any of that; the old file is then still there.
    pub fn store(&mut self, records: &Records, at: u64) -> Result<&RecordsFile, StoreError> {
        let failed = |path: &Path, what| {
            let path = path.to_owned();
            move |source| StoreError { path, what, source }
        };
        let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        fs::create_dir_all(&folder).map_err(failed(&folder, "the folder cannot be made"))?;
        let temporary = self.temporary();
        let mut file =
            locked(&temporary).map_err(failed(&temporary, "the temporary file cannot be had"))?;

        let content = RecordsFile::following(self.before(at).as_ref(), records, at);
        let text = serde_json::to_vec(&content)
            .map_err(io::Error::from)
            .map_err(failed(&self.path, "the records cannot be put into JSON"))?;
        let written = file
            .set_len(0)
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.set_permissions(Permissions::from_mode(MODE)))
            .and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half a file takes up room that may be what is missing. Whether or not it can go,
            // the first error is the one to tell.
            let _ = fs::remove_file(&temporary);
            return Err(failed(&temporary, "the temporary file cannot be written")(error));
        }
        fs::rename(&temporary, &self.path)
            .map_err(failed(&self.path, "the temporary file cannot take its place"))?;
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed(&folder, "the folder cannot be synced"))?;
        let version = file.metadata().map(|found| version(&found));
        let version = version.map_err(failed(&self.path, "it cannot be looked at"))?;
        Ok(&self.last.insert((version, content)).1)
    }

    /// What the file holds; if it is ours, without reading it.
    fn before(&self, at: u64) -> Option<RecordsFile> {
        let ours = self.last.as_ref();
        let found = fs::metadata(&self.path).ok().map(|found| version(&found));
        if let Some((version, content)) = ours
            && found.is_none_or(|found| found == *version)
        {
            return Some(content.clone());
        }
        let read = |bytes: Vec<u8>| Ok(serde_json::from_slice::<RecordsFile>(&bytes)?);
        let on_disk = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.and_then(read).unwrap_or_else(|error: io::Error| {
                // Its generation is lost. No other writer counts as fast as the clock, so that
                // this one is higher.
                let path = self.path.display();
                warn!(%path, %error, "the snapshot file cannot be read as one and is replaced");
                RecordsFile { generation: at, ..RecordsFile::default() }
            })),
        };
        // Of two the later one, even if somebody put an older file back.
        let ours = ours.map(|(_, content)| content.clone());
        on_disk.into_iter().chain(ours).max_by_key(|content| content.generation)
    }

    /// `.<name>.tmp` beside it.
    fn temporary(&self) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(".tmp");
        self.path.with_file_name(name)
    }
}

/// The temporary file, ours alone.
fn locked(path: &Path) -> io::Result<File> {
    // Between opening and locking, another writer may have given the file its real name; then
    // this is no longer the temporary file. A few turns are enough among two or three writers.
    for _ in 0..10 {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(MODE).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let same = |found: fs::Metadata| file.metadata().map(|ours| ours.ino() == found.ino());
        if fs::metadata(path).and_then(same).unwrap_or(false) {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn version(found: &fs::Metadata) -> Version {
    (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}
