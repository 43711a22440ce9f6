//! Random histories of pods, ServiceAccounts and users' Services against the real API server: no user's Service is ever
//! changed, what should exist does, and writing ends. (Thousands of them run against a fake, with lost answers.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aether::capture::{self, Inbox, Outcome, Reconciler};
use aether::generate::{Generator, Kubernetes, Observer, Operation, Periods};
use aether::leader::Leadership;
use aether::model::Finding;
use aether::source::kubernetes::{self, Access};
use aether::{generate, health, index, translate};
use anyhow::{Context, Result, ensure};
use it::cluster::{Cluster, Options};
use it::eventually;
use it::objects::Objects;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::stage::{SOON, runs};

const ACCOUNTS: [&str; 4] = ["web", "cart", "pay", "book"];
/// How many histories; each takes some seconds.
const HISTORIES: u64 = 12;
/// What is not needed goes sooner than it would.
const PERIODS: Periods = Periods { gone: Duration::from_secs(2), idle: Duration::from_secs(4) };

#[derive(Clone, Default)]
struct Writes(Arc<Mutex<usize>>);

impl Observer for Writes {
    fn findings(&mut self, _: Vec<Finding>) {}

    fn did(&mut self, _: &Operation, outcome: &generate::Outcome) {
        *self.0.lock().unwrap() += usize::from(*outcome == generate::Outcome::Written);
    }
}

/// The generator, as `serve` runs it, but impatient.
async fn generator(kubeconfig: std::path::PathBuf) -> Result<Writes> {
    let access = Access { kubeconfig: Some(kubeconfig), context: None };
    let connection = kubernetes::connect(&access).await?;
    let (updates, queued) = mpsc::channel(64);
    let part = health::Health::default().part("source");
    tokio::spawn(kubernetes::follow(
        connection.clone(),
        updates,
        part,
        kubernetes::Metrics::default(),
    ));
    let (registry, registries) = watch::channel(None);
    let reconciler = Reconciler::new(index::Settings::default(), translate::Settings::default());
    capture::spawn(
        reconciler,
        Inbox { updates: queued, fates: None, pins: None, questions: None },
        capture::Metrics::default(),
        None,
        move |outcome: &Outcome| {
            if let Some(new) = &outcome.registry {
                registry.send_replace(Some(new.clone()));
            }
        },
    )?;
    let writes = Writes::default();
    let generator = Generator {
        services: Kubernetes::new(connection.client),
        leadership: Leadership::alone(),
        registry: registries,
        periods: PERIODS,
        observer: writes.clone(),
    };
    tokio::spawn(generator.run());
    Ok(writes)
}

fn of(kind: &str, namespace: &str, name: &str) -> Value {
    json!({ "kind": kind, "metadata": { "name": name, "namespace": namespace } })
}

/// What a history knows of itself.
#[derive(Default)]
struct Known {
    /// Pods, with account and port.
    pods: BTreeMap<String, (String, String)>,
    /// Users' Services, as the API server returned them last.
    users: BTreeMap<String, Value>,
}

async fn happens(
    objects: &Objects,
    namespace: &str,
    known: &mut Known,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let account = ACCOUNTS[random.usize(..ACCOUNTS.len())];
    let pod = format!("p{}", random.usize(..4));
    match random.usize(..10) {
        0..=3 if !known.pods.contains_key(&pod) => {
            let port = ["9000", "9001"][random.usize(..2)];
            let annotations = json!({ "endpoint.aether.io/port": port });
            runs(objects, namespace, &pod, account, &annotations).await?;
            // Ages are told in seconds, and then by name; the test is to know which one is older.
            tokio::time::sleep(Duration::from_millis(1050)).await;
            known.pods.insert(pod, (account.to_owned(), port.to_owned()));
        }
        4 | 5 if known.pods.remove(&pod).is_some() => {
            objects.delete(&of("Pod", namespace, &pod)).await?;
        }
        // Nothing runs as it now.
        6 if !known.pods.values().any(|(of, _)| of == account) => {
            // It may not be there.
            let _ = objects.delete(&of("ServiceAccount", namespace, account)).await;
        }
        7 => {
            // A user makes one of this name with all marks that can be copied, or finds that it is taken.
            let mut service = of("Service", namespace, account);
            service["metadata"]["labels"] =
                json!({ "aether.io/mesh-service": random.bool().to_string() });
            service["metadata"]["annotations"] =
                json!({ "aether.io/generated-for": format!("{namespace}/{account}") });
            service["spec"] = json!({ "ports": [{ "port": 80 }] });
            if let Ok(created) = objects.create(&service).await {
                known.users.insert(account.to_owned(), serde_json::to_value(created)?);
            }
        }
        8 if known.users.remove(account).is_some() => {
            objects.delete(&of("Service", namespace, account)).await?;
        }
        // Somebody tampers with ours.
        9 if !known.users.contains_key(account) => {
            let mut drift = of("Service", namespace, account);
            drift["metadata"]["annotations"] = json!({ "aether.io/port": "1" });
            drift["spec"] = json!({ "selector": { "app": "x" } });
            let _ = objects.merge(&drift).await;
        }
        _ => tokio::time::sleep(Duration::from_millis(random.u64(..1500))).await,
    }
    Ok(())
}

/// Whether everything is as it should be once all has settled.
async fn right(objects: &Objects, namespace: &str, known: &Known) -> Result<()> {
    for account in ACCOUNTS {
        let service = objects.get(&of("Service", namespace, account)).await;
        if let Some(user) = known.users.get(account) {
            let now = serde_json::to_value(service?)?;
            ensure!(now == *user, "a user's Service was changed: {user}\n{now}");
            continue;
        }
        // Of the pods of an account, the first by name and age; they are a second apart.
        let pods = known.pods.iter().filter(|(_, (of, _))| of == account);
        let ports: BTreeSet<_> = pods.map(|(_, (_, port))| port.clone()).collect();
        if ports.is_empty() {
            ensure!(service.is_err(), "{account} has no use any more");
            continue;
        }
        let service = serde_json::to_value(service?)?;
        let port = &service["metadata"]["annotations"]["aether.io/port"];
        ensure!(ports.iter().any(|known| port == known), "{service}");
        ensure!(service["spec"]["selector"].is_null(), "{service}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_services_stay_what_should_exist_does_and_writing_ends() -> Result<()> {
    let cluster = Cluster::start(Options::bare()).await?;
    let objects = Objects::new(cluster.client().await?);
    let writes = generator(cluster.kubeconfig(&cluster.admin())?).await?;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let history = |number: u64| {
        let objects = objects.clone();
        async move {
            let namespace = format!("n{number}");
            objects.put(&json!({ "kind": "Namespace", "metadata": { "name": namespace } })).await?;
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(number));
            let mut known = Known::default();
            for _ in 0..40 {
                happens(&objects, &namespace, &mut known, &mut random).await?;
            }
            anyhow::Ok((namespace, known))
        }
    };
    let mut ended = Vec::new();
    for one in futures::future::join_all((0..HISTORIES).map(history)).await {
        ended.push(one?);
    }
    for (namespace, known) in &ended {
        // A name that was taken is looked at again within a minute or two.
        let limit = SOON * 6;
        let asked = eventually("all as it should be", limit, || right(&objects, namespace, known));
        asked.await.with_context(|| format!("seed {seed}, {namespace}"))?;
    }
    let before = *writes.0.lock().unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    ensure!(*writes.0.lock().unwrap() == before, "seed {seed}: it goes on writing");
    ensure!(before > 20, "seed {seed}: hardly anything happened: {before} writes");
    for (namespace, known) in &ended {
        right(&objects, namespace, known).await?;
    }
    println!("{before} writes");
    Ok(())
}
