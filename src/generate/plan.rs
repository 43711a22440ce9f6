//! What is to be done: a pure function of registry, memory and time.

use std::sync::Arc;

use super::form::Wanted;
use super::state::{Since, State};
use super::{Periods, findings};
use crate::leader::Boot;
use crate::model::{Accounts, Finding, Generated, Registry, ServiceKey, is_dns_label};

/// Why a Service is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// No pod for long.
    Idle,
    /// Neither pod nor ServiceAccount.
    Gone,
    /// This Service of a user's claims its name.
    Claimed(Arc<str>),
    /// It was made headless. No update gives it an address; a new one gets one.
    Headless,
}

/// One thing to do about one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It is missing.
    Create(ServiceKey, Wanted),
    /// It has drifted. `None`: what it says of pods stays, since there are none.
    Correct(ServiceKey, Option<Wanted>),
    /// It is not needed.
    Delete(ServiceKey, Why),
}

impl Operation {
    /// The Service.
    pub fn key(&self) -> &ServiceKey {
        match self {
            Self::Create(key, _) | Self::Correct(key, _) | Self::Delete(key, _) => key,
        }
    }

    /// The kind, for logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Create(..) => "create",
            Self::Correct(..) => "correct",
            Self::Delete(..) => "delete",
        }
    }
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What to do, each Service once.
    pub operations: Vec<Operation>,
    /// What is wrong, sorted.
    pub findings: Vec<Finding>,
    /// When there may be something to do although nothing changes.
    pub wake_at: Option<Boot>,
}

impl Plan {
    fn wake(&mut self, at: Boot) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Decides what is to be done. The state has [observed](State::observe) this very registry.
pub fn decide(registry: &Registry, state: &State, periods: &Periods, now: Boot) -> Plan {
    let mut plan = Plan::default();
    for (namespace, accounts) in &registry.namespaces {
        let names = accounts.running.keys().chain(accounts.generated.keys());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.dedup();
        for name in names {
            let key = ServiceKey::new(namespace.clone(), name.clone());
            plan.findings.extend(findings::of_workload(&key, accounts));
            let Some(operation) = operation(&key, accounts, state, periods, now, &mut plan) else {
                continue;
            };
            let tried = state.tried.get(&key);
            plan.findings.extend(tried.and_then(|tried| findings::of_attempt(&operation, tried)));
            match tried.map(super::state::Tried::not_before).filter(|at| *at > now) {
                Some(at) => plan.wake(at),
                None => plan.operations.push(operation),
            }
        }
    }
    plan.findings.sort();
    plan
}

/// What is to be done about one name.
fn operation(
    key: &ServiceKey,
    accounts: &Accounts,
    state: &State,
    periods: &Periods,
    now: Boot,
    plan: &mut Plan,
) -> Option<Operation> {
    let wanted = accounts.running.get(&key.name).map(Wanted::from);
    let claimed = accounts.claimed.get(&key.name);
    let Some(generated) = accounts.generated.get(&key.name) else {
        let free = claimed.is_none() && !accounts.closing && is_dns_label(&key.name);
        return wanted.filter(|_| free).map(|wanted| Operation::Create(key.clone(), wanted));
    };
    // With the namespace, or with whoever deleted it, it goes by itself.
    if generated.deleting || accounts.closing {
        return None;
    }
    let since = state.since.get(key).copied().unwrap_or_default();
    match unneeded(&since, periods, claimed) {
        Some((at, why)) if at <= now => return Some(Operation::Delete(key.clone(), why)),
        Some((at, _)) => plan.wake(at),
        None => {}
    }
    if generated.headless {
        return Some(Operation::Delete(key.clone(), Why::Headless));
    }
    drifted(key, generated, wanted.as_ref()).then(|| Operation::Correct(key.clone(), wanted))
}

/// When a Service is to be deleted, by the first reason that applies.
fn unneeded(since: &Since, periods: &Periods, claimed: Option<&Arc<str>>) -> Option<(Boot, Why)> {
    let claimed = claimed.cloned().map(Why::Claimed).zip(since.claimed);
    let all = [
        claimed.map(|(why, since)| (since + periods.gone, why)),
        since.gone.map(|since| (since + periods.gone, Why::Gone)),
        since.idle.map(|since| (since + periods.idle, Why::Idle)),
    ];
    all.into_iter().flatten().min()
}

fn drifted(key: &ServiceKey, generated: &Generated, wanted: Option<&Wanted>) -> bool {
    !generated.plain
        || generated.mesh_name.as_ref() != Some(&key.name)
        || wanted.is_some_and(|wanted| !wanted.said_by(generated))
}
