//! What is written to the API server: by the leader, and the events of every replica.

use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::admin;
use crate::capture::Outcome;
use crate::cli::kubernetes::Writing as Options;
use crate::cli::serve::Options as Serve;
use crate::events::{self, Recorder, Refusals};
use crate::generate::{self, Generator, Kubernetes, Observer, Operation, Periods};
use crate::health::Health;
use crate::index::FIELD_MANAGER;
use crate::leader::{Elector, Leadership, identity};
use crate::model::{Finding, Findings, NodeId, Registry};
use crate::permissions::{Reviewer, needed};
use crate::source::kubernetes::Connection;
use crate::xds::{Kind, Refusal};

use super::kept::Kept;
use super::webhook;

/// The parts that write, at work.
pub(super) struct Writing {
    registry: watch::Sender<Option<Arc<Registry>>>,
    findings: watch::Sender<Findings>,
    refusals: Refusals,
    leadership: Leadership,
    election: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

impl Writing {
    /// Starts them. The election goes on until `stop`, and then hands over.
    pub(super) fn start(
        connection: &Connection,
        serve: &Serve,
        health: &Health,
        metrics: &admin::Metrics,
        kept: &Kept,
        stop: CancellationToken,
    ) -> Self {
        let options = &serve.writing;
        let client = connection.client.clone();
        let identity = identity();
        let (leadership, election) = elect(connection, options, &identity, health, kept, stop);
        metrics.register(|registry| leadership.register(registry));
        let lease = options.election.as_ref().map(|election| {
            let namespace = election.namespace.as_deref().unwrap_or(&connection.namespace);
            (namespace, election.lease.as_str())
        });
        let mut needed = needed(lease, options.generate);
        needed.extend(webhook::permissions(serve, connection));
        let reviewer = Reviewer::new(client.clone(), needed, health.part("permissions"));
        metrics.register(|registry| reviewer.register(registry));
        let permissions = health.part("permissions");
        let review = move || reviewer.clone().run().boxed();
        let review =
            kept.clone().keep("permissions", review, move |words| permissions.degraded(words));
        let mut others = vec![tokio::spawn(review)];

        let (registry, registries) = watch::channel(None);
        let (of_generator, generated) = watch::channel(Findings::default());
        if options.generate {
            let counts = generate::Metrics::default();
            metrics.register(|registry| counts.register(registry));
            let generator = Generator {
                services: Kubernetes::new(client.clone()),
                leadership: leadership.clone(),
                registry: registries,
                periods: Periods::default(),
                observer: Hearing { findings: of_generator, counts },
            };
            let generate = move || generator.clone().run().boxed();
            others.push(tokio::spawn(kept.clone().keep("generator", generate, drop)));
        }
        let (findings, found) = watch::channel(Findings::default());
        let counts = events::Metrics::default();
        metrics.register(|registry| counts.register(registry));
        let (recorder, refusals) =
            Recorder::new(client, identity, leadership.clone(), vec![found, generated], counts);
        let record = move || recorder.clone().run().boxed();
        others.push(tokio::spawn(kept.clone().keep("events", record, drop)));
        Self { registry, findings, refusals, leadership, election, others }
    }

    /// Whether this process may write.
    pub(super) fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// What hears of refusals, for the xDS server.
    pub(super) fn on_refusal(&self) -> impl Fn(&str, &Refusal) + Send + Sync + 'static {
        let refusals = self.refusals.clone();
        move |node, refusal| {
            if let Ok(NodeId::Pod(pod)) = node.parse() {
                refusals.refused(&pod, words(refusal.kind), &refusal.words);
            }
        }
    }

    /// What hears of each round of the reconciler.
    pub(super) fn on_round(&self) -> impl FnMut(&Outcome) + Send + 'static {
        let (registry, findings) = (self.registry.clone(), self.findings.clone());
        move |outcome| {
            if let Some(new) = &outcome.registry {
                registry.send_replace(Some(new.clone()));
            }
            if let Some(new) = &outcome.findings {
                findings.send_replace(new.clone());
            }
        }
    }

    /// Waits for the hand-over, which takes less than a second, and ends the rest.
    pub(super) async fn end(self) {
        let _ = self.election.await;
        self.others.iter().for_each(JoinHandle::abort);
    }
}

fn elect(
    connection: &Connection,
    options: &Options,
    identity: &str,
    health: &Health,
    kept: &Kept,
    stop: CancellationToken,
) -> (Leadership, JoinHandle<()>) {
    let Some(election) = &options.election else {
        info!("no leader is elected: this process always writes, and must be the only one");
        return (Leadership::alone(), tokio::spawn(async {}));
    };
    let elector = Elector {
        client: connection.client.clone(),
        namespace: election.namespace.clone().unwrap_or_else(|| connection.namespace.clone()),
        name: election.lease.clone(),
        identity: identity.to_owned(),
        settings: election.settings,
        manager: FIELD_MANAGER,
        health: health.part("leader"),
    };
    let part = elector.health.clone();
    let (leadership, election) = elector.elect(stop);
    let election = kept.clone().keep("election", election, move |words| part.degraded(words));
    (leadership, tokio::spawn(election))
}

/// The resources of a kind, in words.
fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Cluster => "clusters",
        Kind::Endpoints => "endpoints",
        Kind::Listener => "listeners",
        Kind::Routes => "route configurations",
        Kind::VirtualHost => "virtual hosts",
    }
}

/// Hears the generator.
#[derive(Clone)]
struct Hearing {
    findings: watch::Sender<Findings>,
    counts: generate::Metrics,
}

impl Observer for Hearing {
    fn findings(&mut self, findings: Vec<Finding>) {
        self.findings.send_replace(findings.into_iter().collect());
    }

    fn did(&mut self, operation: &Operation, outcome: &generate::Outcome) {
        self.counts.did(operation, outcome);
    }
}
