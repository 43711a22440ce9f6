//! Whether this process leads, and the permits to write that come of it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{Boot, Clock};

/// A term of leadership: from taking the Lease to losing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    /// Counts the terms of this process, from 1.
    pub number: u64,
    /// When it ends, unless a renewal is stored before.
    pub until: Boot,
}

/// Whether this process leads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leadership {
    term: watch::Receiver<Option<Term>>,
    clock: Clock,
    writing: TaskTracker,
    /// Keeps the leadership of a process that holds no election.
    _kept: Option<Arc<watch::Sender<Option<Term>>>>,
}

impl Leadership {
    /// That of a process that is alone and holds no election: it always leads.
    pub fn alone() -> Self {
        let (sender, term) = watch::channel(Some(Term { number: 1, until: Boot::NEVER }));
        let writing = TaskTracker::new();
        Self { term, clock: Clock::boot(), writing, _kept: Some(Arc::new(sender)) }
    }

    /// Whether this process leads now. Do not write because of it: that needs a [`Permit`].
    pub fn is_leader(&self) -> bool {
        self.permit().is_some()
    }

    /// Waits until leadership was gained or lost since this handle last waited. Never done once
    /// the election itself has ended.
    pub async fn changed(&mut self) {
        if self.term.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The permit to write in this term; `None` where another leads.
    pub fn permit(&self) -> Option<Permit> {
        let number = self.term.borrow().as_ref()?.number;
        let permit = Permit { number, leadership: self.clone() };
        permit.check().is_ok().then_some(permit)
    }

    /// Waits for a permit.
    pub async fn acquired(&mut self) -> Permit {
        loop {
            self.term.mark_unchanged();
            if let Some(permit) = self.permit() {
                return permit;
            }
            self.changed().await;
        }
    }
}

/// Why a write was not made, or is not known to have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// The leadership is over. What was under way may or may not have been stored.
    #[error("this process does not lead any more; the next leader goes on")]
    Lost,
    /// No answer in time. It may or may not have been stored: look before writing it again.
    #[error("the API server did not answer within {0:?}")]
    TimedOut(Duration),
}

/// The permit to write in one term. It says nothing of the next moment: ask it before each write,
/// or write through it.
#[derive(Debug, Clone)]
pub struct Permit {
    number: u64,
    leadership: Leadership,
}

impl Permit {
    /// Whether this may be written now.
    pub fn check(&self) -> Result<(), NotWritten> {
        self.remaining().map(|_| ())
    }

    /// How long, as it stands, the term goes on. A renewal makes it longer.
    pub fn remaining(&self) -> Result<Duration, NotWritten> {
        let term = *self.leadership.term.borrow();
        let until = term.filter(|term| term.number == self.number).map(|term| term.until);
        let left = until.map_or(Duration::ZERO, |until| until.since(self.leadership.clock.now()));
        if left.is_zero() { Err(NotWritten::Lost) } else { Ok(left) }
    }

    /// Done when the term is over, as far as the election knows: a process that was stopped learns
    /// it from [`check`](Self::check) earlier than from here.
    pub async fn lost(&self) {
        let mut term = self.leadership.term.clone();
        let over = |term: &Option<Term>| term.is_none_or(|term| term.number != self.number);
        // An election that has ended has said before that nobody leads.
        let _ = term.wait_for(over).await;
    }

    /// Makes one request, for at most `limit`, and for less where less is left of the term.
    ///
    /// Before every step of it the term is looked at, so that a process that was stopped in the
    /// middle does not go on. The hand-over waits, for a moment, for what is under way.
    ///
    /// # Errors
    /// [`NotWritten`]; what the request itself came to is inside.
    pub async fn write<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = T>,
    ) -> Result<T, NotWritten> {
        let left = self.remaining()?;
        // Shorter than what is left: a request that is given up at the very end may still arrive.
        let limit = limit.min(left.saturating_sub(left / 10));
        let _under_way = self.leadership.writing.token();
        let mut request = pin!(request);
        let checked = poll_fn(|context| match self.check() {
            Ok(()) => request.as_mut().poll(context).map(Ok),
            Err(lost) => Poll::Ready(Err(lost)),
        });
        tokio::select! {
            biased;
            () = self.lost() => Err(NotWritten::Lost),
            answer = tokio::time::timeout(limit, checked) => match answer {
                Ok(answer) => answer,
                Err(_) => Err(NotWritten::TimedOut(limit)),
            },
        }
    }
}

#[cfg(test)]
impl Permit {
    /// The permit of a term that is over.
    pub(crate) fn ended() -> Self {
        let (_, leadership) = Seat::new(Clock::boot());
        Self { number: 1, leadership }
    }
}

/// The election's side of a [`Leadership`].
#[derive(Debug)]
pub(super) struct Seat {
    term: watch::Sender<Option<Term>>,
    writing: TaskTracker,
}

impl Seat {
    /// A seat that nobody holds, and the handle on it.
    pub(super) fn new(clock: Clock) -> (Self, Leadership) {
        let (sender, term) = watch::channel(None);
        let writing = TaskTracker::new();
        let leadership = Leadership { term, clock, writing: writing.clone(), _kept: None };
        (Self { term: sender, writing }, leadership)
    }

    /// Says how it stands. A term that goes on longer is no news to those who wait for changes.
    /// The answer is whether leadership was gained or lost.
    pub(super) fn say(&self, term: Option<Term>) -> bool {
        self.term.send_if_modified(|known| {
            let news = known.map(|term| term.number) != term.map(|term| term.number);
            *known = term;
            news
        })
    }

    /// Waits until nothing that was begun with a permit is under way.
    pub(super) async fn idle(&self, limit: Duration) -> bool {
        self.writing.close();
        tokio::time::timeout(limit, self.writing.wait()).await.is_ok()
    }
}

impl Drop for Seat {
    /// An election that is over leaves no leader behind.
    fn drop(&mut self) {
        self.say(None);
    }
}
