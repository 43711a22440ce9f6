//! Word of mounts: the kernel tells nobody who watches a folder that something was mounted on one of
//! its files, but whoever polls the table of mounts.

use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Notify;
use tracing::debug;

/// How often it is seen to whether anybody still wants to hear.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Tells `told` of every mount and unmount, from a thread of its own, until it is dropped.
///
/// # Errors
/// Where there is no table of mounts, or no thread.
pub(super) fn listen(told: &Arc<Notify>) -> io::Result<()> {
    let table = File::open("/proc/self/mountinfo")?;
    let told = Arc::downgrade(told);
    let thread = std::thread::Builder::new().name("mounts".into());
    thread.spawn(move || follow(&table, &told)).map(drop)
}

fn follow(table: &File, told: &Weak<Notify>) {
    while told.strong_count() > 0 {
        let mut polled = [PollFd::new(table, PollFlags::PRI)];
        match poll(&mut polled, Some(&PATIENCE)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let Some(told) = told.upgrade() else { return };
                told.notify_one();
                // A burst is one word.
                std::thread::sleep(super::watch::REST);
            }
            Err(error) => {
                debug!(%error, "mounts are not told of any more");
                return;
            }
        }
    }
}
