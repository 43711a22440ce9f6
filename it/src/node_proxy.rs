//! The folder in which the network namespaces of a node's pods are pinned.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use crate::envoy::Envoy;
use crate::net::{Pod, unmount_below};
use crate::places;
use crate::process::output;

/// A folder of pins. Dropped, what is mounted in it is unmounted, and the folder goes.
#[derive(Debug)]
pub struct Pins {
    folder: TempDir,
}

impl Pins {
    /// An empty one.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: places::folder()? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file of a pod.
    pub fn file(&self, uid: &str) -> PathBuf {
        self.path().join(uid)
    }

    /// Makes the file of a pod and then mounts its namespace on it, as a node agent does.
    pub fn pin(&self, uid: &str, pod: &Pod) -> Result<()> {
        std::fs::write(self.file(uid), "")?;
        let mut mount = Command::new("mount");
        output(mount.arg("--bind").arg(pod.netns().path()).arg(self.file(uid))).map(drop)
    }

    /// The same mount for one Envoy alone, which has mounts of its own.
    pub fn pin_for(&self, envoy: &mut Envoy, uid: &str, pod: &Pod) -> Result<()> {
        let pid = envoy.process().id().to_string();
        let mut mount = Command::new("nsenter");
        // By way of our own mounts, since that Envoy has not seen how the pod's namespace was pinned either.
        let ours = format!("/proc/{}/root{}", std::process::id(), pod.netns().path().display());
        mount.args(["--target", &pid, "--mount", "--", "mount", "--no-canonicalize", "--bind"]);
        output(mount.arg(ours).arg(self.file(uid))).map(drop)
    }

    /// Takes the mount away, and leaves the file.
    pub fn unmount(&self, uid: &str) -> Result<()> {
        output(Command::new("umount").arg("--lazy").arg(self.file(uid))).map(drop)
    }

    /// Takes away both.
    pub fn unpin(&self, uid: &str) -> Result<()> {
        self.unmount(uid)?;
        Ok(std::fs::remove_file(self.file(uid))?)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        unmount_below(self.path());
    }
}
