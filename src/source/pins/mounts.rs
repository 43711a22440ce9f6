//! Word of mounts: the kernel tells nobody who watches a folder that something was mounted on one of
//! its files, but whoever polls the table of mounts.

use std::fs::File;
use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The table of mounts of this process.
#[derive(Debug)]
pub(super) struct Mounts(AsyncFd<File>);

impl Mounts {
    /// Begins to listen; within a runtime.
    pub(super) fn open() -> io::Result<Self> {
        let table = File::open("/proc/self/mountinfo")?;
        AsyncFd::with_interest(table, Interest::PRIORITY).map(Self)
    }

    /// Waits until something was mounted or unmounted since it was waited for last.
    pub(super) async fn changed(&self) -> io::Result<()> {
        self.0.ready(Interest::PRIORITY).await?.clear_ready();
        Ok(())
    }
}
