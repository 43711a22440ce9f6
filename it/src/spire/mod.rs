//! Real identities: a SPIRE server and its agent on this machine.
//!
//! The agent attests itself with a join token and its workloads by their user (`unix:uid:N`). Keys are in memory, the
//! entries in SQLite, everything else in one folder. Both look for news twice a second, ten times as often as they do
//! by default.

mod config;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::cluster::Claim;
use crate::command::Call;
use crate::process::{Process, Spec, tail};
use crate::{eventually, places};

/// The trust domain.
pub const TRUST_DOMAIN: &str = "it.example";

/// Who the agent is to the server, whichever token it came with.
const AGENT: &str = "spiffe://it.example/agent";

/// The port of every server, each at an address of its own.
const PORT: u16 = 8081;

/// How long either may take to be up, on a machine that is busy with other tests.
const READY: Duration = Duration::from_secs(90);

/// A running server, and an agent from [`Spire::start_agent`] on. Dropped, both end.
#[derive(Debug)]
pub struct Spire {
    agent: Option<Process>,
    server: Process,
    claim: Claim,
    // After the processes, which have files in it.
    folder: TempDir,
}

impl Spire {
    /// Starts a server without any agent.
    pub async fn start_server() -> Result<Self> {
        let folder = places::folder()?;
        let claim = Claim::new(PORT)?;
        // The agent's socket is for every user, what else it keeps for none.
        for (name, mode) in [("server", 0o700), ("agent", 0o700), ("workload", 0o755)] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        }
        let conf = folder.path().join("server.conf");
        std::fs::write(&conf, config::server(folder.path(), claim.address()))?;
        let mut args = vec!["run".to_owned(), "-config".to_owned()];
        args.push(conf.display().to_string());
        let log = folder.path().join("spire-server.log");
        let server = Process::start(&Spec::new(&places::tool("spire-server")?, args, &log))?;
        let mut spire = Self { agent: None, server, claim, folder };
        up(&mut spire.server, &spire.folder.path().join("server/api.sock")).await?;
        Ok(spire)
    }

    /// Starts an agent and waits until workloads can ask it. After the end of another one it is the same to the server:
    /// all entries are good for it.
    pub async fn start_agent(&mut self) -> Result<()> {
        let running = match &mut self.agent {
            Some(agent) => agent.ended()?.is_none(),
            None => false,
        };
        ensure!(!running, "an agent runs: stop or kill it first");
        // What an earlier one left: without its keys, which were in memory, it is worth nothing.
        let data = self.folder.path().join("agent");
        for entry in std::fs::read_dir(&data)? {
            std::fs::remove_file(entry?.path())?;
        }
        let bundle = self.server(&["bundle", "show"]).await?;
        std::fs::write(data.join("bundle.pem"), bundle)?;
        let token = self.server_json(&["token", "generate", "-spiffeID", AGENT]).await?;
        let token = token.get("value").and_then(Value::as_str).context("a token without value")?;
        let conf = self.folder.path().join("agent.conf");
        let address = self.claim.address();
        std::fs::write(&conf, config::agent(self.folder.path(), address, &self.socket()))?;
        let mut args = vec!["run".to_owned(), "-config".to_owned()];
        args.extend([conf.display().to_string(), "-joinToken".to_owned(), token.to_owned()]);
        let log = self.folder.path().join("spire-agent.log");
        let agent = Process::start(&Spec::new(&places::tool("spire-agent")?, args, &log))?;
        let socket = self.socket();
        up(self.agent.insert(agent), &socket).await
    }

    /// Ends the agent in good order (SIGTERM), which removes its socket.
    pub fn stop_agent(&mut self) -> Result<()> {
        let mut agent = self.agent.take().context("there is no agent")?;
        agent.signal(Signal::SIGTERM)?;
        agent.wait(Duration::from_secs(20)).map(drop)
    }

    /// Kills the agent (SIGKILL), which leaves its socket behind.
    pub fn kill_agent(&mut self) -> Result<()> {
        self.agent.take().context("there is no agent")?.kill().map(drop)
    }

    /// Stops the agent where it stands (SIGSTOP): it takes connections and is silent.
    pub fn pause_agent(&mut self) -> Result<()> {
        self.agent.as_mut().context("there is no agent")?.pause()
    }

    /// Lets it go on.
    pub fn resume_agent(&mut self) -> Result<()> {
        self.agent.as_mut().context("there is no agent")?.resume()
    }

    /// Ends the server: its agent goes on with what it has, and can renew nothing.
    pub fn stop_server(&mut self) -> Result<()> {
        self.server.kill().map(drop)
    }

    /// The socket of the Workload API; its file is there while an agent runs, and after one was killed.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("workload/api.sock")
    }

    /// Registers `spiffe://it.example/<path>` for the programs of this user, with the default lifetime of one hour, and
    /// returns the entry's id.
    pub async fn entry(&self, path: &str, user: u32) -> Result<String> {
        self.entry_for(path, &[&format!("unix:uid:{user}")], None).await
    }

    /// The same with other selectors, and the seconds that an SVID lives.
    pub async fn entry_for(
        &self,
        path: &str,
        selectors: &[&str],
        seconds: Option<u32>,
    ) -> Result<String> {
        let id = format!("spiffe://{TRUST_DOMAIN}/{path}");
        let seconds = seconds.unwrap_or(3600).to_string();
        let mut args = vec!["entry", "create", "-parentID", AGENT, "-spiffeID", &id];
        args.extend(["-x509SVIDTTL", &seconds]);
        args.extend(selectors.iter().flat_map(|selector| ["-selector", selector]));
        let answer = self.server_json(&args).await?;
        let id = answer.pointer("/results/0/entry/id").and_then(Value::as_str);
        Ok(id.with_context(|| format!("an entry without an id: {answer}"))?.to_owned())
    }

    /// Removes an entry by its id.
    pub async fn delete_entry(&self, id: &str) -> Result<()> {
        self.server(&["entry", "delete", "-entryID", id]).await.map(drop)
    }

    /// Asks the Workload API once for X.509 SVIDs as this user and returns their SPIFFE IDs; an error with the agent's
    /// words where it gives none within 5 s.
    pub async fn fetch(&self, user: u32) -> Result<Vec<String>> {
        let call = Call::new(&places::tool_for_all("spire-agent")?)
            .args(["api", "fetch", "x509", "-timeout", "5s", "-output", "json", "-socketPath"])
            .args([self.socket()])
            .user(user)
            .limit(Duration::from_secs(30));
        let answer: Value = serde_json::from_str(&call.text().await?)?;
        let svids = answer.get("svids").and_then(Value::as_array).into_iter().flatten();
        let ids = svids.filter_map(|svid| svid.get("spiffe_id")?.as_str());
        Ok(ids.map(str::to_owned).collect())
    }

    /// Lets SPIRE's own client, as this user, write the first SVID into a folder that is the user's: `svid.0.pem`,
    /// `svid.0.key`, and the trust domain's authorities in `bundle.0.pem`.
    pub async fn write(&self, user: u32, folder: &Path) -> Result<()> {
        let call = Call::new(&places::tool_for_all("spire-agent")?)
            .args(["api", "fetch", "x509", "-timeout", "5s", "-write"])
            .args([folder])
            .args([Path::new("-socketPath"), &self.socket()])
            .user(user)
            .limit(Duration::from_secs(30));
        call.text().await.map(drop)
    }

    /// Waits until this user is given exactly these SPIFFE IDs.
    pub async fn wait_for(&self, user: u32, ids: &[&str], limit: Duration) -> Result<()> {
        let ask = || async {
            let mut given = self.fetch(user).await?;
            given.sort();
            ensure!(given == ids, "{given:?} are given");
            Ok(())
        };
        eventually(&format!("SVIDs of user {user}"), limit, ask).await
    }

    /// The end of both logs.
    pub fn logs(&self) -> String {
        let shown = ["spire-server", "spire-agent"].map(|name| {
            let text = std::fs::read(self.folder.path().join(format!("{name}.log")));
            let text = text.unwrap_or_default();
            format!("== {name}\n{}\n", tail(&String::from_utf8_lossy(&text), 25))
        });
        shown.concat()
    }

    /// Runs a command of `spire-server` that asks the running one.
    async fn server(&self, args: &[&str]) -> Result<String> {
        let socket = self.folder.path().join("server/api.sock");
        let call = Call::new(&places::tool("spire-server")?).args(args).args(["-socketPath"]);
        call.args([socket]).text().await
    }

    async fn server_json(&self, args: &[&str]) -> Result<Value> {
        let args = [args, &["-output", "json"]].concat();
        Ok(serde_json::from_str(&self.server(&args).await?)?)
    }
}

impl Drop for Spire {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the logs of SPIRE end so:\n{}", self.logs());
        }
    }
}

/// Waits until a process takes connections on this socket.
async fn up(process: &mut Process, socket: &Path) -> Result<()> {
    let start = tokio::time::Instant::now();
    while UnixStream::connect(socket).await.is_err() {
        process.must_run()?;
        ensure!(
            start.elapsed() < READY,
            "nobody listens on {} after {READY:?}; the last words:\n{}",
            socket.display(),
            tail(&process.log(), 25)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
