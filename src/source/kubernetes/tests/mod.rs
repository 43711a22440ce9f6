//! The source against an API server in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bad_days;
mod fake;
mod first;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Connection, Metrics, follow};
use crate::health::{Health, Part, State};
use crate::index::Change;
use crate::source::Update;
use fake::Fake;

/// A source that follows a fake API server.
struct Following {
    updates: mpsc::Receiver<Update>,
    part: Part,
    metrics: Metrics,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn connection(fake: &Fake) -> Connection {
    let namespace = "default".to_owned();
    Connection { client: fake.client(), server: "https://10.0.0.1".to_owned(), namespace }
}

fn following(fake: &Fake) -> Following {
    let (sender, updates) = mpsc::channel(4);
    let part = Health::default().part("source");
    let metrics = Metrics::default();
    let task = tokio::spawn(follow(connection(fake), sender, part.clone(), metrics.clone()));
    Following { updates, part, metrics, task }
}

impl Following {
    async fn update(&mut self) -> Update {
        tokio::time::timeout(Duration::from_secs(20), self.updates.recv())
            .await
            .expect("an update within 20 s")
            .expect("the source goes on")
    }

    /// Nothing comes within a while.
    async fn silence(&mut self) {
        let told = tokio::time::timeout(Duration::from_millis(300), self.updates.recv()).await;
        assert!(told.is_err(), "{told:?}");
    }

    /// Waits until health says so.
    async fn says(&self, what: impl Fn(&State) -> bool) -> State {
        for _ in 0..200 {
            let state = self.part.state();
            if what(&state) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it says {:?}", self.part.state());
    }

    fn metric(&self, line: &str) -> bool {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text.lines().any(|one| one == line)
    }
}

/// The changes in words: `+Kind name` and `-Kind name`.
fn words(update: &Update) -> Vec<String> {
    let word = |change: &Change| match change {
        Change::Put { id, .. } => format!("+{} {}", id.kind.as_str(), id.name),
        Change::Remove(id) => format!("-{} {}", id.kind.as_str(), id.name),
    };
    update.changes.iter().map(word).collect()
}

fn pod(name: &str, ip: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "shop", "labels": { "aether.io/managed": "true" } },
        "spec": { "containers": [{ "name": "a", "image": "b" }], "nodeName": "n1" },
        "status": { "phase": "Running", "podIP": ip },
    })
}

fn node(name: &str, zone: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone } }, "status": { "huge": "x" } })
}
