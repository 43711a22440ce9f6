//! Which events are to be written: a pure function of what is wrong, what was told, and time.

use std::collections::BTreeSet;

use super::history::{History, Told};
use super::{Limits, Message};
use crate::leader::Boot;

/// An event to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// What it says.
    pub message: Message,
    /// How often it has been told, this time included. 1: it is new.
    pub count: u32,
}

/// What is to be written now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The events, sorted.
    pub writes: Vec<Write>,
    /// When there may be something to write although nothing happens.
    pub wake_at: Option<Boot>,
}

/// Decides what is written now. `lasting` is all that is the case, `once` what has just happened.
/// The history counts what comes of it as written; what fails is [told to it](History::failed).
pub fn plan(
    lasting: &BTreeSet<Message>,
    once: &[Message],
    history: &mut History,
    now: Boot,
) -> Plan {
    let limits = history.limits;
    history.told.retain(|_, told| told.lasting || now.since(told.at) < limits.forget);
    for (message, told) in &mut history.told {
        told.lasting &= lasting.contains(message);
    }
    for message in lasting {
        if let Some(told) = history.enter(message, now) {
            told.fresh |= !told.lasting;
            told.lasting = true;
        }
    }
    for message in once {
        if let Some(told) = history.enter(message, now) {
            told.fresh = true;
        }
    }

    let mut plan = Plan::default();
    let mut due: Vec<_> = history
        .told
        .iter()
        .filter_map(|(message, told)| Some((due(told, &limits)?, message.clone())))
        .collect();
    // Where there are more than may be told, those that wait longest come first.
    due.sort_by_key(|(due, _)| *due);
    for (due, message) in due {
        let at = if due > now { Err(due) } else { history.token(now) };
        if let Err(later) = at {
            plan.wake_at = Some(plan.wake_at.map_or(later, |earlier| earlier.min(later)));
            continue;
        }
        let Some(told) = history.told.get_mut(&message) else { continue };
        told.count = told.count.saturating_add(1);
        told.at = now;
        told.fresh = false;
        plan.writes.push(Write { message, count: told.count });
    }
    plan
}

/// When it is to be told, if at all.
fn due(told: &Told, limits: &Limits) -> Option<Boot> {
    let due = match told {
        Told { count: 0, fresh: true, at, .. } => *at,
        Told { fresh: true, at, .. } => *at + limits.repeat,
        Told { lasting: true, at, .. } => *at + limits.refresh,
        _ => return None,
    };
    Some(due.max(told.not_before))
}
