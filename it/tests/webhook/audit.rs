//! The API server's own word on whom it called: its audit log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use it::eventually;
use serde_json::Value;

/// The audit log of an API server.
pub struct Audit {
    log: PathBuf,
    policy: PathBuf,
}

/// One call of a webhook for a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// 0, or 1 where it was called again.
    pub round: usize,
    /// The entry that matched.
    pub entry: String,
    /// Whether it changed anything.
    pub mutated: bool,
}

impl Audit {
    /// A log in this folder.
    pub fn new(folder: &Path) -> Self {
        let (log, policy) = (folder.join("audit.log"), folder.join("audit-policy.json"));
        let text = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "resources": [{"group": ""}]}, {"level": "None"}]}"#;
        std::fs::write(&policy, text).unwrap();
        Self { log, policy }
    }

    /// The flags of an API server that writes it.
    pub fn flags(&self) -> [String; 3] {
        [
            format!("--audit-log-path={}", self.log.display()),
            format!("--audit-policy-file={}", self.policy.display()),
            "--audit-log-mode=blocking".to_owned(),
        ]
    }

    /// The requests for pods of a namespace, with this verb.
    pub fn events(&self, namespace: &str, verb: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of = |event: &Value| {
            let object = &event["objectRef"];
            object["resource"] == "pods"
                && object["namespace"] == namespace
                && event["verb"] == verb
        };
        events.filter(of).collect()
    }

    /// The event of one pod's creation.
    pub async fn created(&self, namespace: &str, name: &str) -> Value {
        let ask = || async {
            let mut events = self.events(namespace, "create");
            events.retain(|event| {
                event["objectRef"]["name"] == name
                    && event["objectRef"].get("subresource").is_none()
            });
            ensure!(events.len() == 1, "{} events of {namespace}/{name}", events.len());
            Ok(events.remove(0))
        };
        eventually("an audit event", Duration::from_secs(10), ask).await.unwrap()
    }
}

/// The calls of webhooks that an event tells of, in order.
pub fn calls(event: &Value) -> Vec<Call> {
    let mut calls = Vec::new();
    for (key, value) in event["annotations"].as_object().into_iter().flatten() {
        let Some(rest) = key.strip_prefix("mutation.webhook.admission.k8s.io/round_") else {
            continue;
        };
        let (round, index) = rest.split_once("_index_").unwrap();
        let call: Value = serde_json::from_str(value.as_str().unwrap()).unwrap();
        let index: usize = index.parse().unwrap();
        let call = Call {
            round: round.parse().unwrap(),
            entry: call["webhook"].as_str().unwrap().to_owned(),
            mutated: call["mutated"].as_bool().unwrap(),
        };
        calls.push((call.round, index, call));
    }
    calls.sort();
    calls.into_iter().map(|(_, _, call)| call).collect()
}

/// Our own of them.
pub fn ours(event: &Value) -> Vec<Call> {
    calls(event).into_iter().filter(|call| call.entry.ends_with(".aether.io")).collect()
}
