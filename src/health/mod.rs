//! What the parts of the process say of themselves: waiting, ready, or ready with something amiss.
//!
//! A part holds a [`Part`] and says how it is; whoever is asked from outside reads a [`Report`].
//! Two questions are kept apart. Whether the process is ready is what a Kubernetes Service asks
//! before it sends proxies here, and every part that proxies depend on counts. How a part is that
//! stands [apart](Health::apart), such as the webhook, is asked by its name alone, since its
//! trouble must not take the others out of service.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod report;

pub use report::Report;

/// How a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It cannot serve yet, and says what it waits for.
    Waiting(String),
    /// All is well.
    Ready,
    /// It serves what it has, but something is amiss: the words say what, and what to do about it.
    Degraded(String),
}

/// A part's entry.
#[derive(Debug, Clone)]
struct Entry {
    state: State,
    /// Whether the process as a whole waits for it.
    counts: bool,
}

/// How all parts are. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    parts: Mutex<BTreeMap<&'static str, Entry>>,
    draining: AtomicBool,
}

impl Health {
    /// A part that the process depends on. Until it says otherwise it is waiting to start.
    pub fn part(&self, name: &'static str) -> Part {
        self.add(name, true)
    }

    /// A part that is asked for by its own name only.
    pub fn apart(&self, name: &'static str) -> Part {
        self.add(name, false)
    }

    fn add(&self, name: &'static str, counts: bool) -> Part {
        let state = State::Waiting("it has not started".to_owned());
        self.parts().insert(name, Entry { state, counts });
        Part { name, health: self.clone() }
    }

    /// Says that the process is stopping: from now on it is not ready, whatever the parts say.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// How the process is.
    pub fn report(&self) -> Report {
        let draining = self.0.draining.load(Ordering::Relaxed);
        let parts = self.parts();
        let counted = parts.iter().filter(|(_, entry)| entry.counts);
        Report::new(draining, counted.map(|(name, entry)| (*name, entry.state.clone())))
    }

    /// How one part is; `None` where there is no such part.
    pub fn report_of(&self, name: &str) -> Option<Report> {
        let draining = self.0.draining.load(Ordering::Relaxed);
        let parts = self.parts();
        let (name, entry) = parts.get_key_value(name)?;
        Some(Report::new(draining, [(*name, entry.state.clone())]))
    }

    /// Every part with its state, in the order of names.
    pub fn states(&self) -> Vec<(&'static str, State)> {
        self.parts().iter().map(|(name, entry)| (*name, entry.state.clone())).collect()
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<&'static str, Entry>> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle by which a part says how it is.
#[derive(Debug, Clone)]
pub struct Part {
    name: &'static str,
    health: Health,
}

impl Part {
    /// It cannot serve yet; `why` says what it waits for and what to do about it.
    pub fn waiting(&self, why: impl Into<String>) {
        self.set(State::Waiting(why.into()));
    }

    /// All is well.
    pub fn ready(&self) {
        self.set(State::Ready);
    }

    /// It serves what it has; `why` says what is amiss and what to do about it.
    pub fn degraded(&self, why: impl Into<String>) {
        self.set(State::Degraded(why.into()));
    }

    /// What it said last.
    pub fn state(&self) -> State {
        let parts = self.health.parts();
        parts.get(self.name).map_or(State::Ready, |entry| entry.state.clone())
    }

    fn set(&self, state: State) {
        if let Some(entry) = self.health.parts().get_mut(self.name) {
            entry.state = state;
        }
    }
}

#[cfg(test)]
mod tests;
