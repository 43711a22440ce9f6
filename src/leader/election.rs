//! The election as a state machine: observations, answers and time in, requests and terms out.
//!
//! Nothing here waits, reads a clock or speaks to an API server.

use std::sync::Arc;
use std::time::Duration;

use super::permit::Term;
use super::record::older;
use super::{Answer, Boot, Record, Request, Settings, Step};

/// The first pause after a failed request; it doubles up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What is known of the Lease.
#[derive(Debug, Clone)]
struct Known<T> {
    /// The newest record that was seen; `None`: there is no Lease.
    record: Option<Record<T>>,
    /// From when on it may be taken.
    free_at: Boot,
}

/// What the request that is under way wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Read,
    Hold,
    Release,
}

/// One process's part in the election.
#[derive(Debug, Clone)]
pub struct Election<T> {
    settings: Settings,
    identity: Arc<str>,
    known: Option<Known<T>>,
    /// What is known may be out of date: it is read before anything is written.
    doubt: bool,
    term: Option<Term>,
    terms: u64,
    /// When the next renewal is due.
    renew_at: Boot,
    /// No request before this time: the last one failed.
    not_before: Boot,
    failures: u32,
    under_way: Option<(Want, Boot)>,
    stopping: bool,
    done: bool,
}

impl<T: Clone> Election<T> {
    /// The part of a process that calls itself `identity`, by a name that no other process ever
    /// has. It does nothing before it has [`seen`](Self::seen) whether there is a Lease.
    pub fn new(settings: Settings, identity: impl Into<Arc<str>>) -> Self {
        Self {
            settings,
            identity: identity.into(),
            known: None,
            doubt: false,
            term: None,
            terms: 0,
            renew_at: Boot::default(),
            not_before: Boot::default(),
            failures: 0,
            under_way: None,
            stopping: false,
            done: false,
        }
    }

    /// The term in which this process leads.
    pub(super) fn term(&self) -> Option<Term> {
        self.term
    }

    /// Until when this process leads, as it stands; `None` where it does not.
    pub fn leads_until(&self) -> Option<Boot> {
        self.term.map(|term| term.until)
    }

    /// Who holds the Lease, as far as it is known.
    pub fn holder(&self) -> Option<&Arc<str>> {
        self.known.as_ref()?.record.as_ref()?.holder.as_ref()
    }

    /// The watch shows this; `None`: there is no Lease.
    pub fn seen(&mut self, record: Option<Record<T>>, now: Boot) {
        let newest = self.known.as_ref().and_then(|known| known.record.as_ref());
        if let (Some(record), Some(newest)) = (&record, newest)
            && record.older_than(newest)
        {
            return;
        }
        self.know(record, now);
    }

    /// The watch shows that the Lease is gone since a version.
    pub fn seen_deleted(&mut self, version: &str, now: Boot) {
        let newest = self.known.as_ref().and_then(|known| known.record.as_ref());
        if newest.is_none_or(|newest| !older(version, &newest.version)) {
            self.know(None, now);
        }
    }

    /// The request under way has come to this.
    pub fn answered(&mut self, answer: Answer<T>, now: Boot) {
        let Some((want, sent)) = self.under_way.take() else { return };
        match answer {
            Answer::Read(record) => {
                self.fresh();
                self.know(record, now);
            }
            Answer::Stored(record) => {
                self.fresh();
                match want {
                    Want::Release => self.done = true,
                    Want::Hold | Want::Read => self.stored(record, sent, now),
                }
            }
            // Somebody else wrote, or deleted: what is known is out of date.
            Answer::Refused => {
                self.doubt = true;
                self.not_before = now;
            }
            Answer::Failed => {
                self.doubt = true;
                self.not_before = now + self.pause();
                self.failures = self.failures.saturating_add(1);
            }
        }
    }

    /// This process is told to stop: it leads no more, and hands over.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.term = None;
        self.not_before = Boot::default();
    }

    /// What is to be done now.
    pub fn step(&mut self, now: Boot) -> Step<T> {
        if self.term.is_some_and(|term| term.until <= now) {
            self.term = None;
        }
        if self.done {
            return Step::Done;
        }
        let lapse = self.term.map(|term| term.until);
        if self.under_way.is_some() {
            return Step::Wait(lapse);
        }
        let Some(request) = self.request(now) else {
            if self.stopping && !self.doubt {
                self.done = true;
                return Step::Done;
            }
            let due = self.due();
            return Step::Wait(match (due, lapse) {
                (Some(due), Some(lapse)) => Some(due.min(lapse)),
                (due, lapse) => due.or(lapse),
            });
        };
        let want = match request {
            Request::Read => Want::Read,
            Request::Create | Request::Hold(_) => Want::Hold,
            Request::Release(_) => Want::Release,
        };
        self.under_way = Some((want, now));
        Step::Send(request, self.settings.attempt())
    }

    /// The request that is due.
    fn request(&self, now: Boot) -> Option<Request<T>> {
        let mine = self.holder() == Some(&self.identity);
        if self.stopping {
            let record = self.known.as_ref().and_then(|known| known.record.as_ref());
            return match record {
                _ if self.not_before > now => None,
                // It may hold the Lease without knowing.
                _ if self.doubt => Some(Request::Read),
                Some(record) if mine => Some(Request::Release(record.clone())),
                _ => None,
            };
        }
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        if self.doubt {
            return Some(Request::Read);
        }
        let record = self.known.as_ref().and_then(|known| known.record.clone());
        Some(record.map_or(Request::Create, Request::Hold))
    }

    /// When something is to be sent although nothing happens.
    fn due(&self) -> Option<Boot> {
        let due = match (&self.known, self.term) {
            _ if self.doubt => self.not_before,
            (_, Some(_)) => self.renew_at,
            (Some(known), None) => known.free_at,
            // The watch has not begun: whoever is away from the API server waits for it in silence.
            (None, None) => return None,
        };
        Some(due.max(self.not_before))
    }

    /// Takes in what the Lease is now.
    fn know(&mut self, record: Option<Record<T>>, now: Boot) {
        let before = self.known.take();
        let unchanged = match (&before, &record) {
            (Some(Known { record: Some(old), free_at }), Some(new)) => {
                (old.version == new.version).then_some(*free_at)
            }
            _ => None,
        };
        if unchanged.is_none() {
            self.doubt = false;
        }
        let mine =
            record.as_ref().is_some_and(|record| record.holder.as_ref() == Some(&self.identity));
        if !mine {
            self.term = None;
        }
        let free_at = unchanged.unwrap_or_else(|| match &record {
            Some(record) if record.holder.is_some() && !mine => now + self.patience(record),
            Some(_) => now,
            // Deleted under its holder, who may not know it yet: what was seen of it counts on.
            None => before.map_or(now, |known| known.free_at.max(now)),
        });
        self.known = Some(Known { record, free_at });
    }

    /// How long a record that another holds has to stay as it is: as its holder says, and never
    /// shorter than by our own settings, whatever somebody has written into it since.
    fn patience(&self, record: &Record<T>) -> Duration {
        let written = record.duration.unwrap_or_default();
        written.max(self.settings.duration).min(Settings::LONGEST)
    }

    /// What this process wrote is stored: it leads, counted from when it was sent.
    fn stored(&mut self, record: Record<T>, sent: Boot, now: Boot) {
        let newest = self.known.as_ref().and_then(|known| known.record.as_ref());
        let overtaken = newest.is_some_and(|newest| record.older_than(newest));
        if !overtaken {
            self.know(Some(record), now);
        }
        if self.holder() != Some(&self.identity) || self.stopping {
            return;
        }
        let until = sent + self.settings.deadline;
        self.renew_at = sent + self.settings.interval;
        if until <= now {
            return;
        }
        let number = self.term.map_or(self.terms + 1, |term| term.number);
        self.terms = number;
        self.term = Some(Term { number, until });
    }

    /// The API server answers.
    fn fresh(&mut self) {
        self.failures = 0;
        self.doubt = false;
    }

    /// How long to wait after a failure: longer each time, but a leader has no time to lose; and
    /// not the same for all replicas, so that they do not come at once.
    fn pause(&self) -> Duration {
        let longest = self.term.map_or(LONGEST_PAUSE, |_| self.settings.interval.min(PAUSE * 5));
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(longest);
        let spread =
            self.identity.bytes().fold(0_u32, |sum, byte| (sum * 31 + u32::from(byte)) % 256);
        pause.mul_f64(0.75 + f64::from(spread) / 1024.0)
    }
}
