//! A control plane: index, memory and clock, over a fake API server.

use std::sync::Arc;
use std::time::Duration;

use super::fake::Fake;
use crate::generate::{Periods, Plan, State, act, decide};
use crate::index::{Index, Settings};
use crate::leader::{Boot, Leadership, Permit};
use crate::model::{MeshNames, Registry};

pub struct Plane {
    pub fake: Fake,
    pub index: Index,
    pub state: State,
    pub now: Boot,
    permit: Permit,
    registry: Arc<Registry>,
}

impl Plane {
    pub fn new(seed: u64) -> Self {
        Self {
            fake: Fake::new(seed),
            index: Index::new(Settings::new(MeshNames::default(), ["spire-system"], Vec::new())),
            state: State::default(),
            now: Boot(Duration::from_secs(1000)),
            permit: Leadership::alone().permit().unwrap(),
            registry: Arc::default(),
        }
    }

    /// The watches deliver so many changes.
    pub fn hears(&mut self, count: usize) {
        for _ in 0..count {
            let Some(change) = self.fake.with(|state| state.server.feed.pop_front()) else { break };
            self.index.apply(change);
        }
    }

    pub fn plan(&mut self) -> Plan {
        if let Some(registry) = self.index.registry() {
            self.registry = registry;
        }
        self.state.observe(&self.registry, self.now);
        decide(&self.registry, &self.state, &Periods::default(), self.now)
    }

    /// Works until there is nothing to do at this time; what is planned then.
    pub async fn work(&mut self) -> Plan {
        for _ in 0..50 {
            let plan = self.plan();
            if plan.operations.is_empty() {
                return plan;
            }
            for operation in plan.operations {
                let outcome = act(&operation, &self.fake, &self.permit).await;
                self.state.tried(operation.key().clone(), outcome, self.now);
            }
        }
        panic!("it never has enough: {:?}", self.plan());
    }

    /// Lets time pass, and does what falls due meanwhile. The watches keep up.
    pub async fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..5000 {
            self.hears(usize::MAX);
            let plan = self.work().await;
            let heard = self.fake.with(|state| !state.server.feed.is_empty());
            if heard {
                continue;
            }
            match plan.wake_at {
                Some(at) if at <= end => self.now = at.max(self.now),
                _ => {
                    self.now = end;
                    self.work().await;
                    return;
                }
            }
        }
        panic!("it does not come to rest within {time:?}");
    }

    /// Another process leads from now on: it remembers nothing.
    pub fn new_leader(&mut self) {
        self.state = State::default();
    }

    pub fn writes(&self) -> usize {
        self.fake.with(|state| state.writes.len())
    }
}
