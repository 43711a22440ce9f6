//! Files: which ones count, whether one changed, and what is in it.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The most that a file may hold, in bytes: 256 MiB. A larger one is left alone unread, as its
/// objects would need several times as much memory.
pub(super) const MAX_FILE_BYTES: u64 = 256 << 20;

/// A file that was written this short a time before it was read may be written again without its
/// times showing it: file systems count them in ticks, some in whole seconds.
const RACY: Duration = Duration::from_secs(2);

/// Whether a file of this name holds manifests: `.yaml`, `.yml` or `.json` in any case, and not
/// hidden.
pub(super) fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    !is_hidden(path)
        && ["yaml", "yml", "json"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Whether the last part of the path begins with a dot.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// What shows that a file is another one or was written: device, inode, size and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp([i128; 5]);

impl Stamp {
    /// The stamp of what the metadata describes.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let time =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self([
            metadata.dev().into(),
            metadata.ino().into(),
            metadata.len().into(),
            time(metadata.mtime(), metadata.mtime_nsec()),
            time(metadata.ctime(), metadata.ctime_nsec()),
        ])
    }
}

/// Why a file gave no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// There is no file, or a link that leads nowhere.
    #[error("there is no such file")]
    Gone,
    /// A folder, a pipe, a device.
    #[error("it is no ordinary file")]
    NotAFile,
    /// It is too large.
    #[error("it has {found} bytes, more than the {most} that are read")]
    TooLarge {
        /// Its size, or what was read of it before it grew too large.
        found: u64,
        /// The most that is read.
        most: u64,
    },
    /// The system refuses.
    #[error("the system says: {0}")]
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Gone } else { Self::Io(error) }
    }
}

/// Reads a file of at most `most` bytes. Gives its stamp too, or none where a later write might
/// not show in it.
pub(super) fn read(path: &Path, most: u64) -> Result<(Vec<u8>, Option<Stamp>), ReadError> {
    // Asked before opening: to open a pipe would wait for its writer.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    if metadata.len() > most {
        return Err(ReadError::TooLarge { found: metadata.len(), most });
    }
    let file = File::open(path)?;
    let before = file.metadata()?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.len().min(most)).unwrap_or_default());
    (&file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found > most {
        return Err(ReadError::TooLarge { found, most });
    }
    let stamp = Stamp::of(&before);
    let settled = before
        .modified()
        .ok()
        .and_then(|written| SystemTime::now().duration_since(written).ok())
        .is_some_and(|age| age > RACY);
    let unchanged = Stamp::of(&file.metadata()?) == stamp;
    Ok((bytes, Some(stamp).filter(|_| settled && unchanged)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn names_of_manifests() {
        for name in ["a.yaml", "a.yml", "a.json", "A.YAML", "x/a.Json", "a.b.yml"] {
            assert!(is_manifest(Path::new(name)), "{name}");
        }
        for name in
            ["a.yaml~", "a.yaml.swp", ".a.yaml", ".#a.yaml", "4913", "yaml", ".yaml", "a.txt", "a"]
        {
            assert!(!is_manifest(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap().0, b"12345");
        assert!(matches!(read(&path, 4), Err(ReadError::TooLarge { found: 5, most: 4 })));
        // What has no size of its own is bounded while it is read.
        assert!(matches!(read(Path::new("/dev/zero"), 4), Err(ReadError::NotAFile)));
        assert!(matches!(read(folder.path(), 4), Err(ReadError::NotAFile)));
        assert!(matches!(read(&folder.path().join("b"), 4), Err(ReadError::Gone)));
    }

    #[test]
    fn the_stamp_of_a_young_file_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "a").unwrap();
        assert_eq!(read(&path, 9).unwrap().1, None);
        let old = SystemTime::now() - Duration::from_secs(5);
        File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
        let stamp = read(&path, 9).unwrap().1.unwrap();
        assert_eq!(stamp, Stamp::of(&std::fs::metadata(&path).unwrap()));
        std::fs::write(&path, "b").unwrap();
        assert_ne!(stamp, Stamp::of(&std::fs::metadata(&path).unwrap()));
    }
}
