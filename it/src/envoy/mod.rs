//! A real Envoy in a pod.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::net::{Net, Pod};
use crate::places::{self, SIDECAR_USER};
use crate::process::{Process, Spec};
use crate::{eventually, process};

/// A bootstrap that passes every redirected connection on to where it was going, with the stat prefix `passed`. It shows
/// what redirection does on its own.
pub const PASSTHROUGH: &str = include_str!("passthrough.json");

/// The option that says how long what was replaced goes on, in seconds.
pub const DRAIN_TIME: &str = "--drain-time-s";

/// An Envoy as a sidecar runs it: in the pod's namespace, as the sidecar's user, without capabilities, the admin
/// interface on a Unix socket. Dropped, it is killed.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    admin: PathBuf,
    // After the process, which has files in it.
    _folder: TempDir,
}

impl Envoy {
    /// Starts one over this bootstrap (YAML or JSON), whose admin address is replaced.
    pub fn start(pod: &Pod, bootstrap: &str) -> Result<Self> {
        Self::start_with(pod, bootstrap, &[])
    }

    /// Starts one with more arguments, `--component-log-level`, say, or another drain time than the contract's.
    pub fn start_with(pod: &Pod, bootstrap: &str, more: &[&str]) -> Result<Self> {
        Self::launch(bootstrap, more, |envoy, args, log| {
            let mut spec = Spec::new(envoy, args, log);
            spec.netns = Some(pod.netns().name().to_owned());
            spec.user = Some(SIDECAR_USER);
            spec
        })
    }

    /// Starts one as a node proxy runs it: in the node's network namespace, as root. With mounts of its own it sees
    /// none of those that are made later, as in a container without propagation.
    pub fn on_node(net: &Net, bootstrap: &str, own_mounts: bool) -> Result<Self> {
        Self::launch(bootstrap, &[], |envoy, args, log| {
            let mut spec = if own_mounts {
                let whole = ["--mount", "--propagation", "private", "--"].map(str::to_owned);
                let whole = whole.into_iter().chain([envoy.display().to_string()]);
                Spec::new(Path::new("unshare"), whole.chain(args), log)
            } else {
                Spec::new(envoy, args, log)
            };
            spec.netns = Some(net.node().name().to_owned());
            spec
        })
    }

    fn launch(
        bootstrap: &str,
        more: &[&str],
        spec: impl FnOnce(&Path, Vec<String>, &Path) -> Spec,
    ) -> Result<Self> {
        let folder = places::folder()?;
        let (config, admin) = (folder.path().join("envoy.yaml"), folder.path().join("admin.sock"));
        std::fs::write(&config, bootstrap)?;
        // Merged over the file, so that any bootstrap can be run here as it is.
        let own = serde_json::json!({"admin": {"address": {"pipe": {"path": admin}}}}).to_string();
        let config = config.to_string_lossy().into_owned();
        let mut args = vec!["--config-path", &config, "--config-yaml", &own];
        args.extend(["--disable-hot-restart", "--concurrency", "2"]);
        if !more.contains(&DRAIN_TIME) {
            args.extend([DRAIN_TIME, "30"]);
        }
        args.extend(more);
        let args = args.into_iter().map(str::to_owned).collect();
        let spec = spec(&places::envoy()?, args, &folder.path().join("envoy.log"));
        Ok(Self { process: Process::start(&spec)?, admin, _folder: folder })
    }

    /// Waits until it is live: everything that its bootstrap and its first answers name is warm.
    pub async fn ready(&mut self, limit: Duration) -> Result<()> {
        let start = tokio::time::Instant::now();
        loop {
            self.process.must_run()?;
            match self.admin("/ready").await {
                Ok(state) if state.trim() == "LIVE" => return Ok(()),
                last if start.elapsed() > limit => {
                    let log = process::tail(&self.log(), 30);
                    bail!("Envoy is not ready after {limit:?}: {last:?}; its last words:\n{log}");
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// The answer of the admin interface at this path; an error unless it is 200.
    pub async fn admin(&self, path: &str) -> Result<String> {
        self.ask_admin("GET", path).await
    }

    /// The same by POST, for what changes something (`/logging`, `/reset_counters`).
    pub async fn ask_admin(&self, method: &str, path: &str) -> Result<String> {
        let ask = async {
            let stream = UnixStream::connect(&self.admin).await?;
            let (mut send, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            let _connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
            let request = http::Request::builder().method(method).uri(path).header("host", "admin");
            let answer = send.send_request(request.body(Full::<Bytes>::default())?).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            ensure!(status.is_success(), "{status}: {text}");
            Ok(text)
        };
        let answer = timeout(Duration::from_secs(30), ask).await.context("the admin is silent")?;
        answer.with_context(|| format!("{method} {path} of Envoy's admin"))
    }

    /// The same as JSON.
    pub async fn json(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.admin(path).await?)?)
    }

    /// Its whole configuration, endpoints included.
    pub async fn config_dump(&self) -> Result<Value> {
        self.json("/config_dump?include_eds").await
    }

    /// Its clusters and the hosts of each, with their health.
    pub async fn clusters(&self) -> Result<Value> {
        self.json("/clusters?format=json").await
    }

    /// Counters and gauges whose names this pattern finds (a regular expression without escapes).
    pub async fn stats(&self, pattern: &str) -> Result<BTreeMap<String, u64>> {
        let text = self.admin(&format!("/stats?filter={pattern}")).await?;
        let pairs = text.lines().filter_map(|line| line.rsplit_once(": "));
        Ok(pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect())
    }

    /// One counter or gauge; 0 where Envoy has none of this name (it makes most of them when first used).
    pub async fn stat(&self, name: &str) -> Result<u64> {
        Ok(self.stats(&format!("^{name}$")).await?.get(name).copied().unwrap_or(0))
    }

    /// Waits until a counter or gauge satisfies this.
    pub async fn stat_is(
        &self,
        name: &str,
        limit: Duration,
        wanted: fn(u64) -> bool,
    ) -> Result<u64> {
        let ask = || async {
            let value = self.stat(name).await?;
            ensure!(wanted(value), "{name} is {value}");
            Ok(value)
        };
        eventually(name, limit, ask).await
    }

    /// The names of its active listeners.
    pub async fn listeners(&self) -> Result<Vec<String>> {
        let answer = self.json("/listeners?format=json").await?;
        let statuses = answer.get("listener_statuses").and_then(Value::as_array);
        let names = statuses.into_iter().flatten().filter_map(|one| one.get("name")?.as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The process, to signal or to end it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Has Envoy check a bootstrap without running it; an error has Envoy's words.
pub fn validate(bootstrap: &str) -> Result<()> {
    let folder = places::folder()?;
    let config = folder.path().join("envoy.yaml");
    std::fs::write(&config, bootstrap)?;
    let mut command = std::process::Command::new(places::envoy()?);
    command.args(["--mode", "validate", "--log-level", "error", "--config-path"]).arg(config);
    process::output(&mut command).map(drop)
}
