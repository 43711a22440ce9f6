//! The one place that wires the parts together.

mod admin;
mod explain;
mod feeding;
mod identity_ready;
mod kept;
mod objects;
mod once;
mod pins;
mod proxies;
mod resolve;
mod seeing;
mod webhook;
mod writing;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures::FutureExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

pub use crate::source::manifest::{Form, RawDocument, documents};
pub use explain::explain;
pub use identity_ready::identity_ready;
pub use once::{Once, once, once_with};
pub use resolve::resolve;

use feeding::Feeding;
use kept::Kept;
use writing::Writing;

use crate::admin::Metrics;
use crate::capture::names::{self, Names};
use crate::capture::{self, Inbox, Outcome, Reconciler};
use crate::cli::serve::Options;
use crate::health::{Health, Part};
use crate::status::{self, Serving};
use crate::xds::{Server, Store};

/// How many updates may queue between the source and the reconciler, which takes all at once. A
/// source that fills it waits, so that memory stays bounded.
const QUEUE: usize = 64;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Where there is no source of objects, or an address cannot be served; before anything has started.
/// And where what feeds the snapshots has ended, which is a bug.
pub async fn serve(options: Options) -> Result<()> {
    // Before anything else, so that a signal during the start is not lost.
    let feeding = Feeding::default();
    let stop = over(feeding.clone()).context("signals")?.shared();
    let (health, metrics, kept) = (Health::default(), Metrics::default(), Kept::default());
    metrics.add_health(&health);
    metrics.register(|registry| kept.register(registry));

    // The source first: where there is none, nothing is bound or said to be served.
    let pins = pins::follow(options.pins.clone());
    let (updates, queued) = mpsc::channel(QUEUE);
    let (follow, connection) =
        objects::follow(&options.objects, updates, &health, &metrics).await?;
    let admin = admin::bind(options.admin)?;
    let (listeners, secured) = proxies::listeners(&options).await?;
    let webhook = webhook::bind(&options, connection.as_ref())?;

    let (store, fates) = proxies::store(options.canary);
    let version = concat!("aether/", env!("CARGO_PKG_VERSION"));
    let mut server = Server::new(&store, version, proxies::admit())
        .vouch(proxies::vouch(&options, secured.as_ref()))
        .limits(options.access.limits.clone())
        .drain(options.access.drain);
    let serving = Serving::default();
    let beside = status::services(server.clients(), store.subscribe(), &serving);
    server = server.beside(beside);
    let leave = CancellationToken::new();
    let writing = connection.map(|connection| {
        let stop = leave.clone();
        Writing::start(&connection, &options, &health, &metrics, &kept, stop)
    });
    let leadership = writing.as_ref().map(Writing::leadership);
    let webhook = webhook
        .map(|webhook| webhook.start(leadership, &health, &metrics, &kept, stop.clone()))
        .transpose()?;
    if let Some(writing) = &writing {
        server = server.on_refusal(writing.on_refusal());
    }
    metrics.register(|registry| server.register(registry));
    let capture = capture::Metrics::default();
    metrics.register(|registry| capture.register(registry));

    let names = options.names.map(|(path, heartbeat)| {
        let written = names::Metrics::default();
        metrics.register(|registry| written.register(registry));
        Names::start(&path, heartbeat, written)
    });
    let names = names.transpose().context("the thread of --mesh-dns-snapshot")?;

    let (explain, questions) =
        explain::Explain::new(&options.translate, store.subscribe(), server.clients());
    let reconciler = Reconciler::new(options.index, options.translate);
    let part = health.part("snapshot");
    part.waiting("the objects are not read yet");
    let mut on_round = writing.as_ref().map(Writing::on_round);
    let pages = explain.page(seeing::pages(server.clients(), store.subscribe()));
    let mut noted = explain.on_round();
    let mut publish = announced(store, part.clone(), serving.clone());
    let (alive, reconciling) = Feeding::reconciler();
    let each_round = move |outcome: &Outcome| {
        let _held = &alive;
        if let Some(on_round) = &mut on_round {
            on_round(outcome);
        }
        noted(outcome);
        publish(outcome);
    };
    let pinned = pins.as_ref().map(|following| following.pins.clone());
    let inbox = Inbox { updates: queued, fates, pins: pinned, questions: Some(questions) };
    capture::spawn(reconciler, inbox, capture, names, each_round)
        .context("the reconciler's thread")?;
    let watch = feeding.watch(tokio::spawn(follow), reconciling, part);
    let certificate =
        secured.map(|secured| tokio::spawn(secured.follow(health.clone(), metrics.clone())));

    let ended = CancellationToken::new();
    let admin =
        admin.map(|admin| admin::serve(admin, health.clone(), metrics, pages, ended.clone()));
    let stop = async {
        stop.await;
        health.drain();
        serving.set(false);
        leave.cancel();
    };
    server.run(listeners, stop).await;
    // Whatever broke: the rest ends in good order, so that another process leads at once.
    let webhook = match webhook {
        Some(webhook) => webhook.await.context("the webhook"),
        None => Ok(()),
    };
    // The source ends, its channel closes, and with it the reconciler.
    watch.end();
    certificate.inspect(JoinHandle::abort);
    drop(pins);
    if let Some(writing) = writing {
        writing.end().await;
    }
    ended.cancel();
    if let Some(admin) = admin {
        admin.await.context("health and metrics")?;
    }
    webhook?;
    if let Some(words) = feeding.words() {
        bail!("{words}, which is a bug to be reported; start this process anew");
    }
    info!("stopped");
    Ok(())
}

/// Publishes snapshots, and says of the first that there is one.
fn announced(store: Store, part: Part, serving: Serving) -> impl FnMut(&Outcome) + Send + 'static {
    let mut first = true;
    move |outcome| {
        let Some(snapshot) = outcome.snapshot.clone() else { return };
        let proxies = snapshot.nodes.len();
        store.publish_since(snapshot, outcome.since.unwrap_or_else(Instant::now));
        if std::mem::take(&mut first) {
            info!(proxies, "the objects are read; serving");
            part.ready();
            serving.set(true);
        }
    }
}

/// Done when the process is told to stop, or has nothing new to serve any more.
fn over(feeding: Feeding) -> std::io::Result<impl Future<Output = ()>> {
    let told = stopped()?;
    Ok(async move {
        tokio::select! { () = told => {}, () = feeding.ended() => {} }
    })
}

/// Done when the process is told to stop.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => info!("told to stop by SIGTERM"),
            _ = int.recv() => info!("told to stop by SIGINT"),
        }
    })
}
