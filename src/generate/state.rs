//! What a leader remembers from one round to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use super::act::Outcome;
use crate::leader::Boot;
use crate::model::{Registry, ServiceKey};

/// How long a Service that is not needed is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// After its ServiceAccount and the last of its pods are gone, or a user's Service has taken
    /// its name.
    pub gone: Duration,
    /// After the last of its pods is gone: a scale to zero must not cost the ClusterIP.
    pub idle: Duration,
}

impl Default for Periods {
    fn default() -> Self {
        Self { gone: Duration::from_secs(60), idle: Duration::from_secs(24 * 60 * 60) }
    }
}

/// After this time without a write or a failure, the next one is the first again.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// Since when a Service is not needed, as far as this leader has seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    /// No pod.
    pub idle: Option<Boot>,
    /// Neither pod nor ServiceAccount.
    pub gone: Option<Boot>,
    /// A user's Service has the name.
    pub claimed: Option<Boot>,
}

/// What the last attempt on a Service came to.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub at: Boot,
    /// How long it is left alone.
    pub pause: Duration,
    /// How often in a row it came to the same before.
    pub run: u32,
    pub outcome: Outcome,
}

impl Tried {
    pub(super) fn not_before(&self) -> Boot {
        self.at + self.pause
    }
}

/// A leader's memory. It begins empty with each term: what was before, this leader has not seen.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) since: BTreeMap<ServiceKey, Since>,
    pub(super) tried: BTreeMap<ServiceKey, Tried>,
}

impl State {
    /// Takes in how things are. Before [`decide`](super::decide), every time.
    pub fn observe(&mut self, registry: &Registry, now: Boot) {
        let mut since = BTreeMap::new();
        for (namespace, accounts) in &registry.namespaces {
            for name in accounts.generated.keys() {
                let key = ServiceKey::new(namespace.clone(), name.clone());
                let before = self.since.get(&key).copied().unwrap_or_default();
                let idle = !accounts.present.contains(name);
                let gone = idle && !accounts.accounts.contains(name);
                let begun = |is: bool, before: Option<Boot>| is.then(|| before.unwrap_or(now));
                let new = Since {
                    idle: begun(idle, before.idle),
                    gone: begun(gone, before.gone),
                    claimed: begun(accounts.claimed.contains_key(name), before.claimed),
                };
                since.insert(key, new);
            }
        }
        self.since = since;
        self.tried.retain(|_, tried| now.since(tried.not_before()) < FORGOTTEN);
    }

    /// Takes in what an attempt came to.
    pub fn tried(&mut self, key: ServiceKey, outcome: Outcome, now: Boot) {
        if outcome == Outcome::Kept {
            // A pod was there after all: its absence has just begun.
            self.since.remove(&key);
        }
        let seconds = Duration::from_secs;
        // The first pause, the longest, and after how many of the same the pauses grow.
        let (first, longest, free) = match &outcome {
            // The watch shows it in a moment. One that drifts again and again is somebody else's
            // doing too, and not worth a fight.
            Outcome::Written => (seconds(1), seconds(300), 8),
            Outcome::AsWanted => (seconds(1), seconds(60), 0),
            Outcome::Overtaken => (Duration::from_millis(200), seconds(30), 0),
            // It is used as soon as it is granted.
            Outcome::Forbidden(_) => (seconds(3), seconds(3), 0),
            Outcome::Failed(_) => (seconds(1), seconds(60), 0),
            Outcome::Kept | Outcome::Taken => (seconds(60), seconds(600), 0),
            Outcome::Refused(_) => (seconds(10), seconds(600), 0),
            Outcome::Lost => return,
        };
        let before = self.tried.get(&key).filter(|tried| now.since(tried.not_before()) < FORGOTTEN);
        let same = |tried: &&Tried| {
            std::mem::discriminant(&tried.outcome) == std::mem::discriminant(&outcome)
        };
        let run = before.filter(same).map_or(0, |tried| tried.run.saturating_add(1));
        let doubled = 1_u32 << run.saturating_sub(free).min(16);
        let pause = first.saturating_mul(doubled).min(longest);
        self.tried.insert(key, Tried { at: now, pause, run, outcome });
    }
}
