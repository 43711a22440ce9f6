//! The permissions to write of `charts/manifests/rbac.yaml`: with all of them nothing is missed; each one that is taken
//! away is said by name within seconds, before it is needed, and used as soon as it is granted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::account::{Account, NAMESPACE};
use it::cluster::Options;
use it::eventually;
use it::plane::Plane;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// A missing permission is said within this time.
const SAID: Duration = Duration::from_secs(5);

struct Stage(Account);

impl std::ops::Deref for Stage {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.0
    }
}

impl Stage {
    async fn new() -> Result<Self> {
        let stage = Self(Account::start(Options::bare()).await?);
        stage.objects.put(&json!({ "kind": "Namespace", "metadata": { "name": "shop" } })).await?;
        Ok(stage)
    }

    fn serve(&self) -> Result<Plane> {
        // Each replica of this test dies without handing over, and the next one is not to wait long.
        let brief = [
            "--lease-duration",
            "3s",
            "--lease-renew-deadline",
            "2s",
            "--lease-renew-interval",
            "500ms",
        ];
        let flags: Vec<_> = ["--own-namespace", NAMESPACE].into_iter().chain(brief).collect();
        Plane::start(&self.kubeconfig, &flags)
    }

    /// The role as it is in the manifest.
    async fn role(&self, kind: &str, name: &str) -> Result<Value> {
        let mut meta = json!({ "name": name });
        if kind == "Role" {
            meta["namespace"] = NAMESPACE.into();
        }
        let found = self.objects.get(&json!({ "kind": kind, "metadata": meta.clone() })).await?;
        Ok(json!({ "kind": kind, "metadata": meta, "rules": found.data["rules"] }))
    }

    /// A managed pod of this ServiceAccount runs.
    async fn runs(&self, account: &str) -> Result<()> {
        let meta = json!({ "name": account, "namespace": "shop", "labels": { "aether.io/managed": "true" } });
        self.objects.put(&json!({ "kind": "ServiceAccount", "metadata": { "name": account, "namespace": "shop" } })).await?;
        let spec = json!({
            "containers": [{ "name": "app", "image": "app" }],
            "serviceAccountName": account, "automountServiceAccountToken": false,
        });
        self.objects.put(&json!({ "kind": "Pod", "metadata": meta.clone(), "spec": spec })).await?;
        let status = json!({ "phase": "Running", "podIP": "10.244.0.9" });
        self.objects
            .merge_status(&json!({ "kind": "Pod", "metadata": meta, "status": status }))
            .await
            .map(drop)
    }

    async fn has_service(&self, name: &str) -> Result<()> {
        let service =
            json!({ "kind": "Service", "metadata": { "name": name, "namespace": "shop" } });
        eventually(&format!("the Service {name}"), SOON, || self.objects.get(&service))
            .await
            .map(drop)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_all_of_them_everything_is_written() -> Result<()> {
    let stage = Stage::new().await?;
    let plane = stage.serve()?;
    plane.says(&["this process leads"], SOON).await?;
    stage.runs("web").await?;
    stage.has_service("web").await?;
    // An event: a user's Service that cannot be read.
    let wrong = json!({
        "kind": "Service",
        "metadata": {
            "name": "wrong", "namespace": "shop",
            "labels": { "aether.io/mesh-service": "true" }, "annotations": { "aether.io/port": "no" },
        },
        "spec": { "ports": [{ "port": 80 }] },
    });
    stage.objects.put(&wrong).await?;
    eventually("the event", SOON, || async {
        let told =
            stage.cluster.kubectl(&["describe", "service", "wrong", "-n", "shop"], "").await?;
        ensure!(told.contains("InvalidValue"), "{told}\n{}", plane.log());
        Ok(())
    })
    .await?;
    // Drift, and a deletion (a user's Service takes the name).
    let drift = json!({ "kind": "Service", "metadata": { "name": "web", "namespace": "shop" }, "spec": { "selector": { "a": "b" } } });
    stage.objects.merge(&drift).await?;
    let attempts = |operation: &str| {
        format!("aether_generator_attempts_total{{operation=\"{operation}\",outcome=\"written\"}}")
    };
    let written = |operation: &'static str| {
        let (plane, name) = (&plane, attempts(operation));
        eventually(operation, SOON * 4, move || {
            let name = name.clone();
            async move {
                ensure!(
                    plane.metric(&name).await? == Some(1.0),
                    "{}",
                    plane.get("/metrics").await?.1
                );
                Ok(())
            }
        })
    };
    written("correct").await?;
    let claims = json!({
        "kind": "Service",
        "metadata": {
            "name": "front", "namespace": "shop",
            "labels": { "aether.io/mesh-service": "true" }, "annotations": { "aether.io/service": "web" },
        },
        "spec": { "ports": [{ "port": 80 }] },
    });
    stage.objects.put(&claims).await?;
    written("delete").await?;
    plane.readyz(200, &["permissions: ready\n", "leader: ready\n"], SOON).await?;
    ensure!(plane.lines(&["we may not"]).is_empty(), "{}", plane.log());
    ensure!(plane.lines(&["forbidden"]).is_empty(), "{}", plane.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_one_that_is_missing_is_said_and_used_when_granted() -> Result<()> {
    let stage = Stage::new().await?;
    for (kind, name) in [("ClusterRole", "aether-writes"), ("Role", "aether-leads")] {
        let whole = stage.role(kind, name).await?;
        let rules = whole["rules"].as_array().context("rules")?;
        for (at, rule) in rules.iter().enumerate() {
            for verb in rule["verbs"].as_array().context("verbs")? {
                let mut without = whole.clone();
                let verbs = without["rules"][at]["verbs"].as_array_mut().context("verbs")?;
                verbs.retain(|one| one != verb);
                if verbs.is_empty() {
                    without["rules"].as_array_mut().context("rules")?.remove(at);
                }
                stage.objects.merge(&without).await?;
                // The API server's own view of its roles lags behind by a moment.
                tokio::time::sleep(Duration::from_millis(500)).await;
                let verb = verb.as_str().context("a verb")?;
                let group = rule["apiGroups"][0].as_str().context("a group")?;
                let resource = rule["resources"][0].as_str().context("a resource")?;
                is_said(&stage, verb, group, resource, &whole)
                    .await
                    .with_context(|| format!("{verb} {resource} of {name}"))?;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_withdrawn_is_said_although_nothing_needs_it() -> Result<()> {
    let stage = Stage::new().await?;
    let whole = stage.role("ClusterRole", "aether-writes").await?;
    let plane = stage.serve()?;
    plane.says(&["this process leads"], SOON).await?;
    plane.readyz(200, &["permissions: ready\n"], SOON).await?;
    let mut without = whole.clone();
    for rule in without["rules"].as_array_mut().context("rules")? {
        if rule["resources"][0] == "services" {
            rule["verbs"].as_array_mut().context("verbs")?.retain(|verb| verb != "delete");
        }
    }
    ensure!(without != whole, "{whole}");
    let begun = Instant::now();
    stage.objects.merge(&without).await?;
    plane.says(&["we may not", "delete services (API group core)"], SAID).await?;
    ensure!(begun.elapsed() < SAID, "{:?}", begun.elapsed());
    stage.objects.merge(&whole).await?;
    plane.readyz(200, &["permissions: ready\n"], SAID).await.map(drop)
}

async fn is_said(
    stage: &Stage,
    verb: &str,
    group: &str,
    resource: &str,
    whole: &Value,
) -> Result<()> {
    let begun = Instant::now();
    let plane = stage.serve()?;
    let named =
        format!("{verb} {resource} (API group {})", if group.is_empty() { "core" } else { group });
    plane.says(&["we may not", &named], SAID).await?;
    // It serves nevertheless.
    plane.readyz(200, &["permissions: ", "we may not", &named], SAID).await?;
    let gauge = format!(
        "aether_write_forbidden{{verb=\"{verb}\",group=\"{group}\",resource=\"{resource}\"}}"
    );
    ensure!(plane.metric(&gauge).await? == Some(1.0), "{}", plane.get("/metrics").await?.1);
    ensure!(begun.elapsed() < SAID, "{:?}", begun.elapsed());
    let said = plane.lines(&["we may not"]);
    ensure!(said.len() == 1, "the others are none of its concern: {said:#?}");
    stage.objects.merge(whole).await?;
    plane.readyz(200, &["permissions: ready\n"], SOON).await?;
    plane.says(&["this process leads"], SOON).await.map(drop)
}
