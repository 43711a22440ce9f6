//! The generator at work, while this process leads.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::StreamExt;
use futures::future::OptionFuture;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::act::{Outcome, act};
use super::plan::{Operation, decide};
use super::{Periods, Services, State};
use crate::leader::{Boot, Clock, Leadership, Permit};
use crate::model::{Finding, Registry};

/// How many Services are worked on at a time.
const AT_ONCE: usize = 8;
/// How long changes gather before they are looked at. Pods start in crowds.
const GATHER: Duration = Duration::from_millis(50);
/// After so many failures in a row the API server is taken to be away: what is left of hundreds of
/// Services would fail one by one, each after its time limit, by plans that are older each time.
const AWAY: usize = AT_ONCE;
/// How long nothing is tried then; each time in a row doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// How long at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Hears what the generator does.
pub trait Observer: Send {
    /// All that is wrong now; it replaces what was said before. Empty when this process does not
    /// lead.
    fn findings(&mut self, findings: Vec<Finding>);
    /// What came of one operation.
    fn did(&mut self, operation: &Operation, outcome: &Outcome);
}

/// The generator.
#[derive(Clone)]
pub struct Generator<S, O> {
    /// The API server.
    pub services: S,
    /// Whether this process leads.
    pub leadership: Leadership,
    /// The registry, once there is one: it is made of complete lists.
    pub registry: watch::Receiver<Option<Arc<Registry>>>,
    /// How long Services are kept that are not needed.
    pub periods: Periods,
    /// Who hears of it.
    pub observer: O,
}

impl<S: Services, O: Observer> Generator<S, O> {
    /// Works whenever this process leads, until the registry ends.
    pub async fn run(mut self) {
        let clock = Clock::boot();
        loop {
            if self.registry.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let permit = self.leadership.acquired().await;
            tokio::select! {
                biased;
                () = permit.lost() => {}
                () = self.term(&permit, &clock) => {}
            }
            self.observer.findings(Vec::new());
            if self.registry.has_changed().is_err() {
                return;
            }
        }
    }

    /// One term: it remembers nothing of another.
    async fn term(&mut self, permit: &Permit, clock: &Clock) {
        let mut state = State::default();
        let (mut told, mut pause) = (None, PAUSE);
        while permit.check().is_ok() {
            let Some(registry) = self.registry.borrow_and_update().clone() else { return };
            let now = clock.now();
            state.observe(&registry, now);
            let plan = decide(&registry, &state, &self.periods, now);
            if told.as_ref() != Some(&plan.findings) {
                self.observer.findings(plan.findings.clone());
                told = Some(plan.findings);
            }
            if !plan.operations.is_empty() {
                let answered = self.work(plan.operations, &mut state, permit, clock).await;
                if answered {
                    pause = PAUSE;
                } else {
                    warn!(
                        "the API server does not answer: mesh Services are left alone for {pause:?}"
                    );
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
                continue;
            }
            if !self.wait(plan.wake_at, clock).await {
                return;
            }
        }
    }

    /// Waits for a change, or for a time; whether there will be one.
    async fn wait(&mut self, wake_at: Option<Boot>, clock: &Clock) -> bool {
        let wake = wake_at.map(|at| sleep(at.since(clock.now())));
        tokio::select! {
            changed = self.registry.changed() => {
                sleep(GATHER).await;
                changed.is_ok()
            }
            Some(()) = OptionFuture::from(wake) => true,
        }
    }

    /// Works them off; whether the API server answered to the last. Where it does not, the rest is
    /// left to a newer plan.
    async fn work(
        &mut self,
        operations: Vec<Operation>,
        state: &mut State,
        permit: &Permit,
        clock: &Clock,
    ) -> bool {
        let (services, failures) = (&self.services, AtomicUsize::new(0));
        let mut done = futures::stream::iter(operations)
            .take_while(|_| ready(failures.load(Relaxed) < AWAY))
            .map(|operation| async move {
                let outcome = act(&operation, services, permit).await;
                (operation, outcome)
            })
            .buffer_unordered(AT_ONCE);
        while let Some((operation, outcome)) = done.next().await {
            tell(&operation, &outcome);
            self.observer.did(&operation, &outcome);
            if matches!(outcome, Outcome::Failed(_)) {
                failures.fetch_add(1, Relaxed);
            } else {
                failures.store(0, Relaxed);
            }
            state.tried(operation.key().clone(), outcome, clock.now());
        }
        drop(done);
        failures.into_inner() < AWAY
    }
}

fn tell(operation: &Operation, outcome: &Outcome) {
    let service = operation.key();
    let kind = operation.as_str();
    match (operation, outcome) {
        (Operation::Delete(_, why), Outcome::Written) => {
            info!(%service, ?why, "a mesh Service that is not needed any more is deleted");
        }
        (_, Outcome::Written) => info!(%service, kind, "a mesh Service is written"),
        (_, Outcome::Failed(words)) => warn!(%service, kind, "a mesh Service: {words}"),
        (_, outcome) => debug!(%service, kind, outcome = outcome.as_str(), "a mesh Service"),
    }
}
