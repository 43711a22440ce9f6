//! The certificate kept in order: what is decided is done.

mod held;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret as Object;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::ExponentialBackoff;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};

use super::api::{Kubernetes, LIMIT, Reading};
use super::authority::{Authorities, Now};
use super::bundle::{self, Configuration};
use super::metrics::Metrics;
use super::plan::{Observed, Plan, Write, plan, secret_of};
use super::rotation::{Contents, Place};
use super::serve::Serve;
use super::settings::Settings;
use super::slot::Slot;
use super::x509::{self, Leaf};
use crate::api::{self, ApiError};
use crate::health::{Part, State};
use crate::leader::{Boot, Clock, Leadership, NotWritten};
use held::{Failed, Held};

/// How long changes gather before they are looked at: a write of ours shows in both watches.
const GATHER: Duration = Duration::from_millis(20);
/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(3));

/// Keeps the certificate of this replica, and as a leader the authorities of all.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// The API server.
    pub kubernetes: Kubernetes,
    /// Whether this process may write.
    pub leadership: Leadership,
    /// What it is set to.
    pub settings: Settings,
    /// Where the certificate goes.
    pub slot: Arc<Slot>,
    /// Says whether it is trusted.
    pub health: Part,
    /// What is counted.
    pub metrics: Metrics,
}

impl Keeper {
    /// Works until it is dropped.
    pub async fn run(mut self) {
        let clock = Clock::boot();
        let mut held = Held::default();
        let mut watch = stream::select(self.watch_secret(), self.watch_configuration());
        self.health.waiting("its Secret is not read yet");
        loop {
            let wake_at = self.round(&mut held, &clock).await;
            let pause = wake_at.since(clock.now());
            if pause.is_zero() {
                continue;
            }
            tokio::select! {
                Some(()) = watch.next() => sleep(GATHER).await,
                () = self.leadership.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Reads, decides, does; when to come again.
    async fn round(&self, held: &mut Held, clock: &Clock) -> Boot {
        let Reading { secret, configuration, wall, object } = self.kubernetes.read().await;
        let boot = clock.now();
        let now = Now { wall: held.wall(wall, boot), boot };
        held.memory.observe(&secret, &configuration, boot);
        if let Some(good) = &held.memory.good {
            self.metrics.authorities(good);
        }
        let mut plan = self.decide(held, &secret, &configuration, now);
        if let Serve::Sign(pair) = &plan.serve {
            let signed = x509::sign(pair, now.wall, &self.settings);
            let unsigned = signed.map(|leaf| self.present(leaf, held, now)).err();
            plan = self.decide(held, &secret, &configuration, now);
            let words = unsigned.map(|error| format!("no certificate can be signed: {error}"));
            plan.findings.extend(words);
        }
        if plan.ready.is_ok() {
            plan.ready = held.verify(&configuration, now.wall, &self.settings);
        }
        // What could not be read or signed is tried again soon.
        let soon = if plan.findings.is_empty() { plan.wake_at } else { boot + PAUSES.1 };
        let Some(write) = plan.write.take() else {
            (held.trouble, held.failures, held.row) = (None, 0, 0);
            self.say(&plan, held);
            return plan.wake_at.min(soon);
        };
        let written = self.write(&write, object, now).await;
        let pause = held.wrote(written, &write, &self.settings);
        self.say(&plan, held);
        clock.now() + pause
    }

    fn decide(
        &self,
        held: &Held,
        secret: &super::Secret,
        configuration: &Configuration,
        now: Now,
    ) -> Plan {
        let observed = Observed {
            secret,
            configuration,
            memory: &held.memory,
            served: held.served.as_ref(),
            leader: self.leadership.is_leader(),
            now,
        };
        plan(&observed, &self.settings)
    }

    fn present(&self, leaf: Leaf, held: &mut Held, now: Now) {
        self.slot.set(leaf.certified.clone());
        self.metrics.signed(leaf.until);
        info!(expires_in = leaf.until.saturating_sub(now.wall), "a new certificate is presented");
        held.present(leaf, now.wall);
    }

    /// Says how it is: what changed, on the log too.
    fn say(&self, plan: &Plan, held: &Held) {
        let others = plan.findings.iter().chain(&held.trouble).map(String::as_str);
        let state = if let Err(why) = &plan.ready {
            let words: Vec<_> = std::iter::once(why.as_str()).chain(others).collect();
            State::Waiting(words.join("; "))
        } else {
            let words: Vec<_> = others.collect();
            if words.is_empty() { State::Ready } else { State::Degraded(words.join("; ")) }
        };
        self.metrics.ready(plan.ready.is_ok());
        if self.health.state() == state {
            return;
        }
        match state {
            State::Ready => {
                info!("API servers trust the webhook's certificate");
                self.health.ready();
            }
            State::Waiting(why) => {
                warn!("the webhook is not ready: {why}");
                self.health.waiting(why);
            }
            State::Degraded(why) => {
                warn!("the webhook is ready, but {why}");
                self.health.degraded(why);
            }
        }
    }

    async fn write(&self, write: &Write, object: Option<Value>, now: Now) -> Result<(), Failed> {
        let permit = self.leadership.permit().ok_or(NotWritten::Lost)?;
        let request = async {
            match write {
                Write::Create(contents) => {
                    let contents = self.filled(contents, now)?;
                    self.kubernetes.create(&self.settings, &contents).await
                }
                Write::Replace(_, contents) => {
                    let contents = self.filled(contents, now)?;
                    self.kubernetes.replace(object.unwrap_or_default(), &contents).await
                }
                Write::Delete { uid, version } => self.kubernetes.delete(uid, version).await,
                Write::Bundle { version, entries, trusted } => {
                    let pem = bundle::text(trusted);
                    let pem = pem.map_err(|error| ApiError::Failed(error.to_string()))?;
                    self.kubernetes.bundle(version, entries, &pem).await
                }
            }
        };
        let written = permit.write(LIMIT, request).await;
        let outcome = match &written {
            Ok(Ok(())) => "written",
            Ok(Err(error)) => error.as_str(),
            Err(NotWritten::Lost) => "lost",
            Err(NotWritten::TimedOut(_)) => "failed",
        };
        self.metrics.wrote(write.object(), outcome);
        written??;
        if let Write::Create(contents) | Write::Replace(_, contents) = write {
            info!(step = contents.step.as_str(), "{} is written", secret_of(&self.settings));
            self.metrics.step(contents.step);
        } else {
            info!(write = write.as_str(), "{} is put right", write.words(&self.settings));
        }
        Ok(())
    }

    /// What the Secret is to hold, with the new authority made.
    fn filled(&self, contents: &Contents, now: Now) -> Result<Authorities, ApiError> {
        let mut authorities = contents.authorities.clone();
        if let Some(place) = contents.fresh {
            let pair = x509::authority(now.wall, &self.settings);
            let pair = Some(pair.map_err(|error| ApiError::Failed(error.to_string()))?);
            match place {
                Place::Signing => authorities.signing = pair,
                Place::Next => authorities.next = pair,
            }
        }
        Ok(authorities)
    }

    /// Says when the Secret may have changed. What it holds is not read by it.
    fn watch_secret(&self) -> BoxStream<'static, ()> {
        let namespace = &self.settings.namespace;
        let api: Api<PartialObjectMeta<Object>> =
            Api::namespaced(self.kubernetes.client(), namespace);
        let watch = watcher(api, api::only(&self.settings.secret)).backoff(backoff());
        watch.map(drop).boxed()
    }

    /// The same of the configuration.
    fn watch_configuration(&self) -> BoxStream<'static, ()> {
        let api: Api<PartialObjectMeta<MutatingWebhookConfiguration>> =
            Api::all(self.kubernetes.client());
        let watch = watcher(api, api::only(&self.settings.configuration)).backoff(backoff());
        watch.map(drop).boxed()
    }
}

fn backoff() -> ExponentialBackoff {
    ExponentialBackoff::from(api::backoff(PAUSES.1))
}
