//! What the file watcher told since the folder was looked at last. Paths are a set, so however
//! fast files change, this does not grow beyond the number of files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};

/// What is to be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Paths at which something came, went or was completed.
    pub(super) settled: BTreeSet<PathBuf>,
    /// Files that somebody is writing.
    pub(super) writing: BTreeSet<PathBuf>,
    /// The watcher lost count, so everything is to be looked at.
    pub(super) rescan: bool,
}

/// What an event says of its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Settled,
    Writing,
    Nothing,
}

fn signal(kind: EventKind) -> Signal {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Signal::Settled,
        // Opening and reading, our own too; and times, owners and modes, which are no content: a
        // file that becomes readable is found by trying again.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => Signal::Nothing,
        // The end of the writing is told by a close, where the system has such events.
        EventKind::Modify(ModifyKind::Data(_)) | EventKind::Create(CreateKind::File) => {
            Signal::Writing
        }
        _ => Signal::Settled,
    }
}

/// Takes events from the watcher's thread and hands them out together.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    work: Mutex<Work>,
    changed: tokio::sync::Notify,
}

impl Inbox {
    /// Takes what the watcher has to say.
    pub(super) fn put(&self, event: notify::Result<notify::Event>) {
        {
            let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            let event = match event {
                Ok(event) if !event.need_rescan() => event,
                Ok(_) => return self.lost_count(&mut work),
                Err(error) => {
                    tracing::warn!(%error, "the file watcher has trouble, looking at the whole folder");
                    return self.lost_count(&mut work);
                }
            };
            let signal = signal(event.kind);
            if signal == Signal::Nothing {
                return;
            }
            for path in event.paths {
                if signal == Signal::Writing {
                    work.settled.remove(&path);
                    work.writing.insert(path);
                } else {
                    work.writing.remove(&path);
                    work.settled.insert(path);
                }
            }
        }
        self.changed.notify_one();
    }

    fn lost_count(&self, work: &mut Work) {
        work.rescan = true;
        self.changed.notify_one();
    }

    /// Takes out all that came.
    pub(super) fn take(&self) -> Work {
        std::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something has come since it was waited for last.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use notify::Event;
    use notify::event::{DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

    use super::*;

    fn put(inbox: &Inbox, kind: EventKind, path: &str) {
        inbox.put(Ok(Event::new(kind).add_path(path.into())));
    }

    #[test]
    fn writing_ends_with_a_close() {
        let inbox = Inbox::default();
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        put(&inbox, EventKind::Create(CreateKind::File), "a");
        put(&inbox, write, "a");
        put(&inbox, write, "b");
        put(&inbox, close, "b");
        put(&inbox, close, "c");
        put(&inbox, write, "c");
        let work = inbox.take();
        assert_eq!(work.writing, ["a".into(), "c".into()].into());
        assert_eq!(work.settled, ["b".into()].into());
        assert_eq!(inbox.take(), Work::default());
    }

    #[test]
    fn what_comes_and_goes_settles_and_reading_is_nothing() {
        let inbox = Inbox::default();
        for (kind, path) in [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), "open"),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), "read"),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "touched"),
            (EventKind::Create(CreateKind::Folder), "folder"),
            (EventKind::Remove(RemoveKind::File), "removed"),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "renamed"),
        ] {
            put(&inbox, kind, path);
        }
        let work = inbox.take();
        assert_eq!(work.settled, ["folder".into(), "removed".into(), "renamed".into()].into());
        assert!(work.writing.is_empty() && !work.rescan);
    }

    #[test]
    fn an_overflow_and_an_error_ask_for_everything() {
        let inbox = Inbox::default();
        inbox.put(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(inbox.take().rescan);
        inbox.put(Err(notify::Error::generic("broken")));
        assert!(inbox.take().rescan);
    }
}
