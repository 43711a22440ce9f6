//! What a stream was sent last of each type, and how it was answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::xds::{Kind, Protocol, Refusal, Response};

/// How many responses of a type are remembered that were not answered.
const UNANSWERED: usize = 16;

/// How many bytes of a client's words are kept.
const WORDS: usize = 4096;

/// How many names are kept that stand in a client's words.
const NAMES: usize = 32;

/// A response that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its nonce.
    pub nonce: u64,
    /// When.
    pub at: SystemTime,
    /// How many resources were in it.
    pub resources: usize,
    /// How many names it said to be gone.
    pub removed: usize,
}

impl Sent {
    /// A response that is sent now.
    pub(in crate::xds) fn now(response: &Response) -> Self {
        Self {
            nonce: response.nonce,
            at: SystemTime::now(),
            resources: response.resources.len(),
            removed: response.removed.len(),
        }
    }
}

/// A response that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its nonce.
    pub nonce: u64,
    /// When the refusal came.
    pub at: SystemTime,
    /// The client's words; of very long ones, the first 4 KiB.
    pub words: Arc<str>,
    /// The resources of that response that the words name, 32 at most.
    pub names: Arc<[String]>,
}

/// A response that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Flying {
    nonce: u64,
    since: Option<Instant>,
}

/// What is known of one type.
#[derive(Debug, Default)]
pub(in crate::xds) struct Account {
    pub(in crate::xds) sent: Option<Sent>,
    /// The last response that was accepted, and when.
    pub(in crate::xds) accepted: Option<(u64, SystemTime)>,
    /// The last response that was refused.
    pub(in crate::xds) refused: Option<Refused>,
    unanswered: VecDeque<Flying>,
}

impl Account {
    /// How many responses wait for an answer.
    pub(in crate::xds) fn unanswered(&self) -> usize {
        self.unanswered.len()
    }
}

/// The accounts of a stream.
#[derive(Debug)]
pub(in crate::xds) struct Ledger {
    protocol: Protocol,
    kinds: Vec<(Kind, Account)>,
}

impl Ledger {
    /// That of a new stream.
    pub(in crate::xds) fn new(protocol: Protocol) -> Self {
        Self { protocol, kinds: Vec::new() }
    }

    /// What is known of a type.
    pub(in crate::xds) fn account(&self, kind: Kind) -> Option<&Account> {
        self.kinds.iter().find(|(k, _)| *k == kind).map(|(_, account)| account)
    }

    /// Notes a response; whether it is the first of its type. `since` is when the change came that
    /// it tells of, if it tells of one.
    pub(in crate::xds) fn sent(&mut self, kind: Kind, sent: Sent, since: Option<Instant>) -> bool {
        let at = self.kinds.iter().position(|(k, _)| *k == kind).unwrap_or_else(|| {
            self.kinds.push((kind, Account::default()));
            self.kinds.len() - 1
        });
        let Some((_, account)) = self.kinds.get_mut(at) else { return false };
        if account.unanswered.len() >= UNANSWERED {
            account.unanswered.pop_front();
        }
        account.unanswered.push_back(Flying { nonce: sent.nonce, since });
        account.sent.replace(sent).is_none()
    }

    /// Notes that a response was accepted: its type, and since when the change was known that it
    /// told of. `None` where no response waits under this nonce.
    pub(in crate::xds) fn accepted(
        &mut self,
        nonce: u64,
        at: SystemTime,
    ) -> Option<(Kind, Option<Instant>)> {
        let (kind, account, flying) = self.land(nonce)?;
        account.accepted = Some((nonce, at));
        Some((kind, flying.since))
    }

    /// Notes that a response was refused.
    pub(in crate::xds) fn refused(&mut self, nonce: u64, refusal: &Refusal, at: SystemTime) {
        if let Some((_, account, _)) = self.land(nonce) {
            let words = beginning(&refusal.words, WORDS).into();
            let names = refusal.names.iter().take(NAMES).cloned().collect();
            account.refused = Some(Refused { nonce, at, words, names });
        }
    }

    /// The response that waits under a nonce, whatever the type that the answer names. One that
    /// speaks of the state of the world answers all before it as well.
    fn land(&mut self, nonce: u64) -> Option<(Kind, &mut Account, Flying)> {
        let whole = self.protocol == Protocol::Sotw;
        self.kinds.iter_mut().find_map(|(kind, account)| {
            let at = account.unanswered.iter().position(|flying| flying.nonce == nonce)?;
            let flying = account.unanswered.remove(at)?;
            if whole {
                account.unanswered.drain(..at);
            }
            Some((*kind, account, flying))
        })
    }
}

/// The beginning of a text, at most so many bytes of it.
pub(in crate::xds) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
