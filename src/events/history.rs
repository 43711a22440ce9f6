//! What was told, and how much more may be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Message;
use crate::leader::Boot;

/// How often things are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What lasts is told again after this time: before the API server forgets an event, which it
    /// does after an hour unless it was set up differently.
    pub refresh: Duration,
    /// What comes back, or happens again, is not told again before this time.
    pub repeat: Duration,
    /// What did not come back for so long is told anew.
    pub forget: Duration,
    /// How many events there may be at once, and one more after each `pace`.
    pub burst: u32,
    /// See `burst`.
    pub pace: Duration,
    /// How many different events one object may have within `forget`.
    pub per_object: usize,
    /// How many events are remembered, three quarters of them of one reason at most. What is beyond
    /// it is not told.
    pub remembered: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            refresh: Duration::from_mins(45),
            repeat: Duration::from_mins(5),
            forget: Duration::from_hours(1),
            burst: 100,
            pace: Duration::from_millis(500),
            per_object: 10,
            remembered: 4096,
        }
    }
}

/// What is remembered of one event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    /// How often it was told.
    pub count: u32,
    /// When it was last told; before the first time, when it was first to be.
    pub at: Boot,
    /// Not before this time: it failed.
    pub not_before: Boot,
    /// It is the case now.
    pub lasting: bool,
    /// It came back, or happened again, since it was last told.
    pub fresh: bool,
}

/// What was told. Its size is bounded.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) limits: Limits,
    pub(super) told: BTreeMap<Message, Told>,
    tokens: u32,
    counted: Boot,
    /// How many messages there was no room for.
    pub(super) dropped: u64,
}

impl History {
    /// Nothing was told yet.
    pub fn new(limits: Limits, now: Boot) -> Self {
        let tokens = limits.burst;
        Self { limits, told: BTreeMap::new(), tokens, counted: now, dropped: 0 }
    }

    /// How many messages are remembered.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// How many messages were not told, since there was no room for them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// It could not be written: it is tried again, later.
    pub fn failed(&mut self, message: &Message, now: Boot) {
        if let Some(told) = self.told.get_mut(message) {
            told.count = told.count.saturating_sub(1);
            told.fresh = true;
            told.not_before = now + self.limits.repeat / 5;
        }
    }

    /// It had been told so often already, by whoever was here before.
    pub fn counted(&mut self, message: &Message, count: u32) {
        if let Some(told) = self.told.get_mut(message) {
            told.count = told.count.max(count);
        }
    }

    /// Makes room for a message, if it may have some.
    pub(super) fn enter(&mut self, message: &Message, now: Boot) -> Option<&mut Told> {
        if !self.told.contains_key(message) {
            let of_object = self.told.keys().filter(|other| other.object == message.object).count();
            // One reason that thousands of objects share must leave room for the others.
            let of_reason = || self.told.keys().filter(|other| other.reason == message.reason);
            let most = self.limits.remembered - self.limits.remembered / 4;
            if of_object >= self.limits.per_object
                || self.told.len() >= self.limits.remembered
                || self.told.len() >= most && of_reason().count() >= most
            {
                self.dropped += 1;
                return None;
            }
            self.told.insert(message.clone(), Told { at: now, fresh: true, ..Told::default() });
        }
        self.told.get_mut(message)
    }

    /// Takes a token; or says when there is one.
    pub(super) fn token(&mut self, now: Boot) -> Result<(), Boot> {
        let pace = self.limits.pace.max(Duration::from_millis(1));
        let more = now.since(self.counted).as_nanos() / pace.as_nanos();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if more > 0 {
            self.tokens = self.tokens.saturating_add(more).min(self.limits.burst);
            self.counted = if self.tokens == self.limits.burst {
                now
            } else {
                self.counted + pace.saturating_mul(more)
            };
        }
        let left = self.tokens.checked_sub(1).ok_or(self.counted + pace)?;
        self.tokens = left;
        Ok(())
    }
}
