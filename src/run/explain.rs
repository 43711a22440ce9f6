//! Where a connection of a pod goes, and why: from objects that are read once, and from those that
//! a running server follows.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use crate::admin::{Asked, NoPage, Pages};
use crate::capture::{self, Outcome, Reconciler};
use crate::cli::options::Objects;
use crate::explain::{self, Evidence, ExplainError, Explanation, Proxy, Question};
use crate::model::Finding;
use crate::translate::naming::node_id;
use crate::xds::{Clients, Progress, Snapshot};
use crate::{index, translate};

use super::objects::load;

/// How long the reconciler may take to get to a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads all objects once, and answers a question of them.
///
/// # Errors
/// Where the folder or the API server cannot be read at all; a pod that is not known is an
/// [`ExplainError`].
pub fn explain(
    question: &Question,
    objects: &Objects,
    translate: translate::Settings,
    index: index::Settings,
) -> Result<Explanation> {
    let update = load(objects)?;
    let settings = translate.clone();
    let mut reconciler = Reconciler::new(index, translate);
    reconciler.apply(update);
    // The first round makes a snapshot even of nothing.
    let outcome = reconciler.reconcile();
    let projection = reconciler.projection().cloned().unwrap_or_default();
    let findings = outcome.appeared.into_iter().map(|finding| (finding, None)).collect();
    let snapshot = outcome.snapshot.unwrap_or_default();
    let index = reconciler.index();
    let evidence = Evidence::gather(question, &settings, index, &projection, &snapshot, findings);
    Ok(explain::explain(question, &evidence)?)
}

/// What a running server explains from.
#[derive(Clone)]
pub(super) struct Explain {
    settings: translate::Settings,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    clients: Arc<Clients>,
    ask: mpsc::Sender<capture::Question>,
    /// Since when each finding is there, as far as this process has seen it come.
    since: Arc<Mutex<BTreeMap<Finding, Timestamp>>>,
}

impl Explain {
    /// Explains what these snapshots serve; the reconciler is to take the questions.
    pub(super) fn new(
        settings: &translate::Settings,
        snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
        clients: Arc<Clients>,
    ) -> (Self, mpsc::Receiver<capture::Question>) {
        let (ask, questions) = mpsc::channel(1);
        let since = Arc::default();
        (Self { settings: settings.clone(), snapshots, clients, ask, since }, questions)
    }

    /// What is to hear of each round.
    pub(super) fn on_round(&self) -> impl FnMut(&Outcome) + Send + 'static {
        let since = self.since.clone();
        move |outcome| {
            if outcome.appeared.is_empty() && outcome.vanished.is_empty() {
                return;
            }
            let mut since = since.lock().unwrap_or_else(PoisonError::into_inner);
            for finding in &outcome.vanished {
                since.remove(finding);
            }
            let now = Timestamp::now();
            since.extend(outcome.appeared.iter().map(|finding| (finding.clone(), now)));
        }
    }

    /// The page `/explain`.
    pub(super) fn page(&self, pages: Pages) -> Pages {
        let usage =
            "/explain?pod=<namespace>/<name>&destination=<host>:<port>[&speaks=http|tls|tcp]";
        let this = self.clone();
        pages.with("/explain", usage, move |asked| {
            let question = question(asked)?;
            let explained = explain::explain(&question, &this.evidence(&question)?);
            let explanation = explained.map_err(|error| match error {
                ExplainError::NoPod(..) => NoPage::Absent(error.to_string()),
                ExplainError::Undecodable(_) => NoPage::Failed(error.to_string()),
            })?;
            let json = serde_json::to_vec_pretty(&explanation);
            let mut json = json.map_err(|error| NoPage::Failed(error.to_string()))?;
            json.push(b'\n');
            Ok(json)
        })
    }

    /// Asks the reconciler for what it alone has, and adds what is served.
    fn evidence(&self, question: &Question) -> Result<Evidence, NoPage> {
        let not_yet = || NoPage::NotYet("nothing is served yet: see /readyz".to_owned());
        let away = || NoPage::NotYet("the reconciler does not answer; ask again".to_owned());
        let snapshot = self.snapshots.borrow().clone().ok_or_else(not_yet)?;
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let findings = since.iter().map(|(finding, since)| (finding.clone(), Some(*since)));
        let findings = findings.collect();
        drop(since);
        let served = snapshot.clone();
        let (reply, answer) = sync_channel(1);
        let (asked, settings) = (question.clone(), self.settings.clone());
        let ask = move |reconciler: &Reconciler| {
            let evidence = reconciler.projection().map(|projection| {
                let index = reconciler.index();
                Evidence::gather(&asked, &settings, index, projection, &snapshot, findings)
            });
            // Whoever asked may have gone.
            let _ = reply.send(evidence);
        };
        self.ask.blocking_send(Box::new(ask)).map_err(|_| away())?;
        let evidence = answer.recv_timeout(PATIENCE).map_err(|_| away())?.ok_or_else(not_yet)?;
        let id = evidence.node_proxy.clone().unwrap_or_else(|| node_id(&question.pod).into());
        let proxy = self.proxy(&id, &served);
        Ok(Evidence { proxy: Some(proxy), ..evidence })
    }

    /// How a proxy stands with this server.
    fn proxy(&self, id: &str, snapshot: &Arc<Snapshot>) -> Proxy {
        let reports = self.clients.reports(Some(snapshot)).into_iter();
        let own: Vec<_> = reports.filter(|one| one.node.as_deref() == Some(id)).collect();
        let kinds = own.iter().flat_map(|report| &report.kinds);
        let refused = kinds.filter(|kind| kind.progress == Progress::Refused);
        let refused = refused.filter_map(|kind| {
            let refused = kind.refused.as_ref()?;
            let at = Timestamp::try_from(refused.at).ok()?;
            Some((kind.kind.short_name().to_owned(), at, refused.words.to_string()))
        });
        Proxy { connected: !own.is_empty(), refused: refused.collect() }
    }
}

/// The question of a request.
fn question(asked: &Asked) -> Result<Question, NoPage> {
    let given = |name: &str| {
        let missing = || {
            NoPage::Wrong(format!(
                "{name} is missing: ask for /explain?pod=shop/web-0&destination=cart:80"
            ))
        };
        asked.get(name).ok_or_else(missing)
    };
    let pod = given("pod")?.parse();
    let pod = pod.map_err(|error| NoPage::Wrong(format!("pod: {error}")))?;
    let destination = given("destination")?.parse();
    let destination =
        destination.map_err(|error: explain::DestinationError| NoPage::Wrong(error.to_string()))?;
    let speaks = asked.get("speaks").map(|word| word.parse()).transpose();
    let speaks = speaks.map_err(|error: String| NoPage::Wrong(format!("speaks: {error}")))?;
    Ok(Question { pod, destination, speaks })
}
