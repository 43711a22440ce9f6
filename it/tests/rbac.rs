//! The permissions of `charts/manifests/rbac.yaml`: with all of them everything works, and each one that is taken away
//! is missed, said by name, and used as soon as it is granted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use it::account::{Account, NAMESPACE, RBAC};
use it::cluster::Options;
use it::eventually;
use it::plane::Plane;
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
/// A missing permission is said within this time.
const SAID: Duration = Duration::from_secs(5);

/// Group and resource of all that is read.
const READ: [(&str, &str); 6] = [
    ("", "namespaces"),
    ("", "nodes"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("", "pods"),
];

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
        stage.allowed("watch", "", "pods", true).await?;
        Ok(stage)
    }

    /// Waits until the API server's own view of permissions is this.
    async fn allowed(&self, verb: &str, group: &str, resource: &str, allowed: bool) -> Result<()> {
        let account = self.cluster.service_account(NAMESPACE, "aether").await?;
        let what =
            if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let asked = eventually("permissions", SOON, || async {
            let args = ["auth", "can-i", verb, &what, "--all-namespaces"];
            let output = self.cluster.kubectl_as(&account, &args, "").await?;
            let yes = String::from_utf8_lossy(&output.stdout).trim() == "yes";
            ensure!(yes == allowed, "{output:?}");
            Ok(())
        });
        asked.await
    }

    /// Every permission of the role, but for this one.
    async fn without(&self, verb: &str, group: &str, resource: &str) -> Result<()> {
        let name = json!({ "kind": "ClusterRole", "metadata": { "name": "aether-reads" } });
        let mut rules = Vec::new();
        for (g, r) in READ {
            let of = |v: &&str| (*v, g, r) != (verb, group, resource);
            let verbs: Vec<_> = ["list", "watch"].into_iter().filter(of).collect();
            rules.push(json!({ "apiGroups": [g], "resources": [r], "verbs": verbs }));
        }
        let mut role = name;
        role["rules"] = rules.into();
        self.objects.merge(&role).await?;
        if !verb.is_empty() {
            self.allowed(verb, group, resource, false).await?;
        }
        Ok(())
    }

    async fn check(&self) -> Result<(Option<i32>, String)> {
        let path = self.kubeconfig.to_str().unwrap().to_owned();
        let run = move || it::aether::run(&["check", "--kubeconfig", &path]);
        let output = tokio::task::spawn_blocking(run).await??;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

#[tokio::test]
async fn the_roles_are_what_the_program_reads() -> Result<()> {
    let stage = Stage::new().await?;
    let role = json!({ "kind": "ClusterRole", "metadata": { "name": "aether-reads" } });
    let found = stage.objects.get(&role).await?;
    let mut granted = Vec::new();
    for rule in found.data["rules"].as_array().context("rules")? {
        let texts = |field: &str| -> Vec<String> {
            rule[field].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect()
        };
        ensure!(texts("verbs") == ["list", "watch"], "{rule}");
        for group in texts("apiGroups") {
            granted
                .extend(texts("resources").into_iter().map(|resource| (group.clone(), resource)));
        }
    }
    granted.sort();
    let mut expected =
        READ.map(|(group, resource)| (group.to_owned(), resource.to_owned())).to_vec();
    expected.sort();
    ensure!(granted == expected, "{granted:?}");

    let plane = Plane::start(&stage.kubeconfig, &[])?;
    plane.says(&["xDS on a Unix socket"], SOON).await?;
    plane.readyz(200, &["source: ready\n"], SOON).await?;
    let (code, told) = stage.check().await?;
    ensure!(code == Some(0), "{told}");
    Ok(())
}

#[tokio::test]
async fn each_watch_that_is_forbidden_is_said_and_used_when_granted() -> Result<()> {
    let stage = Stage::new().await?;
    for (group, resource) in READ {
        stage.without("watch", group, resource).await?;
        let begun = Instant::now();
        let plane = Plane::start(&stage.kubeconfig, &[])?;
        let group_said = format!("API group {group:?}");
        let words = ["does not let us watch", resource, &group_said, "grant the verb watch"];
        plane.says(&words, SAID).await.with_context(|| format!("watch {resource}"))?;
        plane.readyz(503, &["source: not ready", "watch", resource], SAID).await?;
        let gauge = format!(
            "aether_source_forbidden{{verb=\"watch\",group=\"{group}\",resource=\"{resource}\"}}"
        );
        ensure!(plane.metric(&gauge).await? == Some(1.0), "{}", plane.get("/metrics").await?.1);
        ensure!(begun.elapsed() < SAID, "{:?}", begun.elapsed());
        // The others are none of its concern.
        let said = plane.lines(&["does not let us"]);
        ensure!(said.len() == 1, "{said:#?}");
        stage.without("", "", "").await?;
        plane.readyz(200, &["source: ready\n"], SOON).await?;
        plane.says(&["we may watch", resource, "again"], SOON).await?;
    }
    Ok(())
}

#[tokio::test]
async fn each_list_that_is_forbidden_is_said() -> Result<()> {
    let stage = Stage::new().await?;
    for (group, resource) in READ {
        stage.without("list", group, resource).await?;
        let (code, told) = stage.check().await?;
        ensure!(code == Some(2), "{code:?}: {told}");
        for word in
            [&format!("list {resource}"), &format!("API group {group:?}"), "grant the verb list"]
        {
            ensure!(told.contains(word), "{word} in {told}");
        }
        ensure!(told.contains("system:serviceaccount:aether-system:aether"), "{told}");
    }
    Ok(())
}

/// Where the API server streams no lists, serving lists too.
#[tokio::test]
async fn a_list_that_is_forbidden_is_said_by_a_server_that_streams_none() -> Result<()> {
    let options = Options::bare().api_server("--feature-gates=WatchList=false");
    let stage = Stage(Account::start(options).await?);
    stage.without("list", "", "nodes").await?;
    let plane = Plane::start(&stage.kubeconfig, &[])?;
    let words = ["does not let us list nodes", "grant the verb list"];
    plane.says(&words, SAID).await?;
    stage.without("", "", "").await?;
    plane.readyz(200, &["source: ready\n"], SOON).await.map(drop)
}

#[test]
fn nothing_is_granted_that_is_not_named_here() {
    // No wildcard, and no permission to read what holds secrets, but for one Secret of ours.
    let rules = RBAC.lines().filter(|line| !line.trim_start().starts_with('#'));
    for line in rules {
        for word in ["\"*\"", "'*'", "configmaps", "escalate", "impersonate", "bind"] {
            let names = line.contains(word) && !line.contains("kind: ClusterRoleBinding");
            assert!(!names, "{line}");
        }
    }
    for document in RBAC.split("\n---\n").filter(|document| document.contains("[secrets]")) {
        assert!(document.contains("kind: Role\n") && document.contains("namespace: aether-system"));
        for rule in document.split("- apiGroups").skip(1) {
            let named = rule.contains("resourceNames: [aether-webhook-ca]");
            assert!(named || rule.contains("verbs: [create]\n"), "{rule}");
        }
    }
}
