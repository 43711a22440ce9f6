//! One look at the folder.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FsWord, statfs};

/// What the kernel calls the file system of namespaces (`NSFS_MAGIC` of linux/magic.h).
const NSFS: FsWord = 0x6e73_6673;

/// The number of a namespace, by the uid of the pod whose file pins it.
pub(super) type Seen = BTreeMap<Arc<str>, u64>;

/// The namespaces that are pinned in a folder; `None` where there is none.
pub(super) fn look(folder: &Path) -> io::Result<Option<Seen>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut seen = Seen::new();
    for entry in entries {
        let entry = entry?;
        let Ok(uid) = entry.file_name().into_string() else { continue };
        match namespace(&entry.path()) {
            Ok(Some(namespace)) => {
                seen.insert(uid.into(), namespace);
            }
            Ok(None) => {}
            // One that vanishes between the two looks is gone. Of any other that cannot be looked at
            // nothing is known, and its pod must not lose its listener for that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(seen))
}

/// The namespace that is mounted on a file; `None` for any other file.
fn namespace(path: &Path) -> io::Result<Option<u64>> {
    if statfs(path)?.f_type != NSFS {
        return Ok(None);
    }
    Ok(Some(std::fs::metadata(path)?.ino()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_ordinary_file_pins_nothing_and_a_namespace_does() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(look(&folder.path().join("none")).unwrap(), None);
        assert_eq!(look(folder.path()).unwrap(), Some(Seen::new()));
        std::fs::write(folder.path().join("file"), "").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
        assert_eq!(look(folder.path()).unwrap(), Some(Seen::new()));
        // A link to a namespace is as good as a mount: Envoy opens the file.
        std::os::unix::fs::symlink("/proc/self/ns/net", folder.path().join("uid")).unwrap();
        let own = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert_eq!(look(folder.path()).unwrap(), Some([("uid".into(), own)].into()));
        // A file in the place of the folder.
        assert!(look(&folder.path().join("file")).is_err());
    }
}
