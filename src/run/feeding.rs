//! Whether the snapshots are still fed: by a source of objects, and by the reconciler.
//!
//! Neither ends by itself. Where one does, which is a bug, what is served would be the past from
//! then on, and nobody would know. So the process says it, drains, and ends with 1: proxies keep what
//! they have, connect to another replica, and Kubernetes starts this one anew.

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::error;

use crate::health::Part;

use super::kept;

/// What was found to have ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Feeding {
    ended: CancellationToken,
    words: Arc<OnceLock<String>>,
}

/// Held by the reconciler's thread: when it is dropped, the thread has ended.
#[derive(Debug)]
pub(super) struct Alive(#[expect(dead_code, reason = "it is dropped")] DropGuard);

impl Feeding {
    /// What the reconciler's thread is to hold, and what is done when it holds it no more.
    pub(super) fn reconciler() -> (Alive, CancellationToken) {
        let gone = CancellationToken::new();
        (Alive(gone.clone().drop_guard()), gone)
    }

    /// Watches over both until the task is aborted, which comes before they are told to end.
    pub(super) fn watch(
        &self,
        source: JoinHandle<()>,
        reconciler: CancellationToken,
        part: Part,
    ) -> Watch {
        let (this, source_ends) = (self.clone(), source.abort_handle());
        let watching = tokio::spawn(async move {
            let words = tokio::select! {
                // The source's channel breaks with the reconciler: which of the two it was comes first.
                biased;
                () = reconciler.cancelled() => "the reconciler has ended".to_owned(),
                ended = source => match ended {
                    Err(error) if error.is_panic() => {
                        let words = kept::words(error.into_panic().as_ref());
                        format!("what reads the objects broke: {words}")
                    }
                    _ => "what reads the objects has ended".to_owned(),
                },
            };
            error!("{words}, which is a bug to be reported: this process ends, to be started anew");
            part.waiting(format!("{words}: this process ends, to be started anew"));
            let _ = this.words.set(words);
            this.ended.cancel();
        });
        Watch { watching, source: source_ends }
    }

    /// Done when one of them has ended.
    pub(super) async fn ended(self) {
        self.ended.cancelled().await;
    }

    /// Which one it was.
    pub(super) fn words(&self) -> Option<&str> {
        self.words.get().map(String::as_str)
    }
}

/// The watch over both.
#[derive(Debug)]
pub(super) struct Watch {
    watching: JoinHandle<()>,
    source: tokio::task::AbortHandle,
}

impl Watch {
    /// Ends the watch, and then the source; with it the reconciler ends.
    pub(super) fn end(self) {
        self.watching.abort();
        self.source.abort();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;
    use crate::health::{Health, State};

    /// What is said, within a while, when the source is this and the reconciler's thread does this.
    async fn said(
        source: impl Future<Output = ()> + Send + 'static,
        thread: impl FnOnce(Alive) + Send + 'static,
    ) -> (Option<String>, State) {
        let (feeding, part) = (Feeding::default(), Health::default().part("snapshot"));
        part.ready();
        let (alive, gone) = Feeding::reconciler();
        let thread = std::thread::spawn(move || thread(alive));
        let watch = feeding.watch(tokio::spawn(source), gone, part.clone());
        let ended = feeding.clone().ended();
        let _ = tokio::time::timeout(Duration::from_millis(300), ended).await;
        watch.end();
        let _ = thread.join();
        (feeding.words().map(str::to_owned), part.state())
    }

    #[tokio::test]
    async fn whichever_ends_is_named_and_nothing_is_said_while_both_live() {
        let lives = || std::future::pending::<()>();
        let works = |alive: Alive| {
            std::thread::sleep(Duration::from_millis(600));
            drop(alive);
        };
        let (words, state) = said(lives(), works).await;
        assert_eq!((words, state), (None, State::Ready));

        for (ended, expected) in [
            (said(async {}, works).await, "what reads the objects has ended"),
            (said(async { panic!("a bug") }, works).await, "what reads the objects broke: a bug"),
            (said(lives(), drop).await, "the reconciler has ended"),
            (said(lives(), |_alive| panic!("a bug")).await, "the reconciler has ended"),
        ] {
            assert_eq!(ended.0.as_deref(), Some(expected));
            let part = format!("{expected}: this process ends, to be started anew");
            assert_eq!(ended.1, State::Waiting(part));
        }
    }
}
