//! The cache: answers of upstream while they are fresh, and past their time while nobody has
//! better ones.

mod generations;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::rr::{Name, RecordType};

use super::reply::{Age, Reply};
use generations::Generations;

/// How long an answer may be used past its time, while upstream is away: a day, as RFC 8767
/// advises.
const STALE_FOR: Duration = Duration::from_hours(24);
/// How long upstream is not asked again after it failed (RFC 9520 asks for a second at least).
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The most that all answers together take in memory, in bytes.
const BUDGET: usize = 32 << 20;
/// Parts with a lock each.
const SHARDS: usize = 16;

/// What is asked upstream. The class is always IN.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The name, in lower case.
    pub name: Name,
    /// The type.
    pub kind: RecordType,
    /// Whether DNSSEC records are wanted.
    pub dnssec_ok: bool,
    /// Whether upstream is not to check them.
    pub checking_disabled: bool,
    /// Whether upstream is to ask others. Where not, the answer is not kept.
    pub recursion_desired: bool,
}

/// What the cache has.
#[derive(Debug, Clone, PartialEq)]
pub enum Hit {
    /// An answer that need not be asked for again now.
    Answer(Arc<Reply>, Age),
    /// One that is past its time: only if upstream has none.
    Stale(Arc<Reply>),
    /// None.
    Nothing,
}

#[derive(Debug, Clone)]
struct Entry {
    reply: Arc<Reply>,
    came: Instant,
    fresh_until: Instant,
    /// Upstream failed; until then it is not asked again.
    failed_until: Option<Instant>,
}

/// Replies by key, in bounded memory. Times are given, so that a test can choose them.
#[derive(Debug)]
pub struct Cache {
    shards: Vec<Mutex<Generations<Key, Entry>>>,
    hasher: RandomState,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(BUDGET)
    }
}

impl Cache {
    /// A cache of at most about this many bytes.
    pub fn new(budget: usize) -> Self {
        let shard = || Mutex::new(Generations::new(budget / SHARDS));
        Self { shards: (0..SHARDS).map(|_| shard()).collect(), hasher: RandomState::new() }
    }

    /// What there is for a key at this time.
    pub fn get(&self, key: &Key, now: Instant) -> Hit {
        let entry = self.shard(key).and_then(|mut shard| shard.get(key));
        let Some(entry) = entry else { return Hit::Nothing };
        if now < entry.fresh_until {
            let age = now.saturating_duration_since(entry.came).as_secs();
            let age = u32::try_from(age).unwrap_or(u32::MAX);
            return Hit::Answer(entry.reply, Age::Seconds(age));
        }
        if entry.failed_until.is_some_and(|until| now < until) {
            return Hit::Answer(entry.reply, Age::Stale);
        }
        if entry.reply.is_answer() && now < entry.fresh_until + STALE_FOR {
            return Hit::Stale(entry.reply);
        }
        Hit::Nothing
    }

    /// Keeps what upstream said. A failure never takes the place of an answer: that one is
    /// then used for as long as upstream is left alone.
    pub fn put(&self, key: &Key, reply: &Arc<Reply>, now: Instant) {
        if !key.recursion_desired {
            return;
        }
        let entry = if reply.is_answer() {
            let Some(fresh_for) = reply.fresh_for() else {
                // It may not be kept, and what is kept is no longer what upstream says.
                if !reply.truncated
                    && let Some(mut shard) = self.shard(key)
                {
                    shard.remove(key);
                }
                return;
            };
            let fresh_until = now + fresh_for;
            Entry { reply: reply.clone(), came: now, fresh_until, failed_until: None }
        } else {
            let before = self.shard(key).and_then(|mut shard| shard.get(key));
            let usable = before
                .filter(|before| before.reply.is_answer() && now < before.fresh_until + STALE_FOR);
            let failed =
                Entry { reply: reply.clone(), came: now, fresh_until: now, failed_until: None };
            Entry { failed_until: Some(now + RETRY_AFTER), ..usable.unwrap_or(failed) }
        };
        let weight = 2 * (size_of::<Key>() + key.name.len()) + entry.reply.weight();
        if let Some(mut shard) = self.shard(key) {
            shard.insert(key.clone(), entry, weight);
        }
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part that a key belongs to.
    fn shard(&self, key: &Key) -> Option<MutexGuard<'_, Generations<Key, Entry>>> {
        let hash = usize::try_from(self.hasher.hash_one(key) >> 32).unwrap_or_default();
        self.shards.get(hash % SHARDS).map(lock)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests;
