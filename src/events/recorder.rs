//! Writing events.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{GetParams, Patch, PatchParams, PostParams, Request};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, watch};
use tracing::{debug, warn};

use super::history::History;
use super::plan::{Write, plan};
use super::{Limits, Message, Metrics, object, regarding};
use crate::index::FIELD_MANAGER;
use crate::leader::{Boot, Clock, Leadership, NotWritten, Permit};
use crate::model::{Findings, PodKey};

/// How long one event may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How many refusals wait to be told. Of more than that at once, some are on the log alone.
const QUEUE: usize = 256;
/// How long findings gather: one object often makes several, one after the other.
const GATHER: Duration = Duration::from_millis(100);

/// Takes what proxies refuse. Cheap to clone; never waits.
#[derive(Debug, Clone)]
pub struct Refusals(mpsc::Sender<Message>);

impl Refusals {
    /// The proxy of a pod refused resources of a kind, in these words.
    pub fn refused(&self, pod: &PodKey, kind: &str, words: &str) {
        // Where too many wait already, one more would tell nothing new.
        let _ = self.0.try_send(Message::refused(pod, kind, words));
    }
}

/// Writes events. Clones take turns: it is begun anew where it broke.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    /// The name of this process.
    instance: String,
    leadership: Leadership,
    /// What the leader tells of.
    findings: Vec<watch::Receiver<Findings>>,
    /// What this process tells of whether or not it leads.
    refusals: Arc<Mutex<mpsc::Receiver<Message>>>,
    metrics: Metrics,
}

/// What became of an event.
enum Wrote {
    Created,
    /// It had been told this often.
    Repeated(u32),
    /// There is no such object.
    Gone,
}

impl Recorder {
    /// A recorder of these findings, and the way to tell it of refusals.
    pub fn new(
        client: Client,
        instance: String,
        leadership: Leadership,
        findings: Vec<watch::Receiver<Findings>>,
        metrics: Metrics,
    ) -> (Self, Refusals) {
        let (sender, refusals) = mpsc::channel(QUEUE);
        let refusals = Arc::new(Mutex::new(refusals));
        let recorder = Self { client, instance, leadership, findings, refusals, metrics };
        (recorder, Refusals(sender))
    }

    /// Writes events until nobody is left who could tell of refusals.
    pub async fn run(mut self) {
        let clock = Clock::boot();
        let mut refusals = self.refusals.clone().lock_owned().await;
        let mut history = History::new(Limits::default(), clock.now());
        let mut once = Vec::new();
        loop {
            let permit = self.leadership.permit();
            let lasting = permit.as_ref().map(|_| self.lasting()).unwrap_or_default();
            let before = history.dropped();
            let plan = plan(&lasting, &std::mem::take(&mut once), &mut history, clock.now());
            self.metrics.dropped(history.dropped() - before);
            for write in plan.writes {
                let permit = permit.as_ref().filter(|_| lasting.contains(&write.message));
                self.write(&write, permit, &mut history, &clock).await;
            }
            if !self.wait(plan.wake_at, &clock, &mut refusals, &mut once).await {
                return;
            }
        }
    }

    /// What is the case, in the words of events.
    fn lasting(&mut self) -> BTreeSet<Message> {
        let findings =
            self.findings.iter_mut().map(|findings| findings.borrow_and_update().clone());
        let findings: Vec<_> = findings.collect();
        findings.iter().flat_map(Findings::iter).filter_map(Message::of).collect()
    }

    /// Waits for something to tell, or for a time; whether there will be more.
    async fn wait(
        &mut self,
        wake_at: Option<Boot>,
        clock: &Clock,
        refusals: &mut mpsc::Receiver<Message>,
        once: &mut Vec<Message>,
    ) -> bool {
        let wake = wake_at.map(|at| tokio::time::sleep(at.since(clock.now())));
        let changed = self.findings.iter_mut().map(|findings| {
            Box::pin(async {
                // A source of findings that has ended has no more news.
                if findings.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        });
        let changed: Vec<_> = changed.collect();
        let changed = async {
            if changed.is_empty() {
                std::future::pending::<()>().await;
            }
            futures::future::select_all(changed).await;
        };
        tokio::select! {
            refusal = refusals.recv() => {
                let Some(refusal) = refusal else { return false };
                once.push(refusal);
                while let Ok(more) = refusals.try_recv() {
                    once.push(more);
                }
            }
            () = changed => tokio::time::sleep(GATHER).await,
            () = self.leadership.changed() => {}
            Some(()) = OptionFuture::from(wake) => {}
        }
        true
    }

    async fn write(
        &self,
        write: &Write,
        permit: Option<&Permit>,
        history: &mut History,
        clock: &Clock,
    ) {
        let Message { object, reason, .. } = &write.message;
        let request = self.request(write);
        let done = match permit {
            Some(permit) => permit.write(LIMIT, request).await,
            None => {
                tokio::time::timeout(LIMIT, request).await.map_err(|_| NotWritten::TimedOut(LIMIT))
            }
        };
        let (outcome, words) = match done {
            Ok(Ok(Wrote::Created)) => ("created", None),
            Ok(Ok(Wrote::Repeated(count))) => {
                history.counted(&write.message, count);
                ("repeated", None)
            }
            Ok(Ok(Wrote::Gone)) => ("gone", None),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                ("forbidden", Some(status.message))
            }
            Ok(Err(error)) => ("failed", Some(error.to_string())),
            // The next leader tells of it.
            Err(NotWritten::Lost) => return history.failed(&write.message, clock.now()),
            Err(error @ NotWritten::TimedOut(_)) => ("failed", Some(error.to_string())),
        };
        self.metrics.wrote(*reason, outcome);
        if let Some(words) = words {
            warn!(%object, reason = reason.name, "an event could not be written: {words}");
            history.failed(&write.message, clock.now());
        } else {
            debug!(%object, reason = reason.name, outcome, "an event");
        }
    }

    /// Creates the event, or counts it once more where it is there already.
    async fn request(&self, write: &Write) -> kube::Result<Wrote> {
        let message = &write.message;
        let Some((version, uid)) = regarding::find(&self.client, &message.object).await? else {
            return Ok(Wrote::Gone);
        };
        let now = Timestamp::now();
        let namespace = object::namespace(message);
        let events = Request::new(format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"));
        let name = object::name(message, &uid);
        let mut count = write.count;
        if count == 1 {
            let event = object::event(message, version, &uid, &self.instance, now);
            let bytes = serde_json::to_vec(&event).map_err(kube::Error::SerdeError)?;
            let params = PostParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            match self.send(events.create(&params, bytes)).await {
                Ok(_) => return Ok(Wrote::Created),
                // Another replica, or this one before it was started anew, told of it.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
            let told = self.send(events.get(&name, &GetParams::default())).await?;
            let told = told.pointer("/series/count").and_then(Value::as_u64).unwrap_or(1);
            count = u32::try_from(told).unwrap_or(u32::MAX).saturating_add(1);
        }
        let patch = Patch::Merge(object::again(count, now));
        let params = PatchParams::apply(FIELD_MANAGER);
        match self.send(events.patch(&name, &params, &patch)).await {
            Ok(_) => Ok(Wrote::Repeated(count)),
            // The API server has forgotten it.
            Err(kube::Error::Api(status)) if status.code == 404 && write.count > 1 => {
                let again = Write { message: message.clone(), count: 1 };
                Box::pin(self.request(&again)).await
            }
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<Value> {
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }
}
