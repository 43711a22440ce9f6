//! The program under test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::net::{NODE_V4, Net};
use crate::places;
use crate::process::{Process, Spec, output, tail};

/// How an Envoy reaches `aether serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// By the Unix socket.
    Socket,
    /// By TCP, from the pod to its node.
    Tcp,
}

/// `aether serve` over a folder of manifests, in the node's namespace. Dropped, it is killed.
#[derive(Debug)]
pub struct Aether {
    process: Process,
    spec: Spec,
    socket: PathBuf,
    // After the process, which has its socket in it.
    _folder: TempDir,
}

impl Aether {
    /// Starts it with `--manifests`, `--xds-socket` and `--xds-address` (the node's, port 18000), and these options. It
    /// serves plain text unless they say otherwise.
    pub fn start(net: &Net, manifests: &Path, options: &[&str]) -> Result<Self> {
        let folder = places::folder()?;
        let socket = folder.path().join("xds.sock");
        let mut args: Vec<String> = ["serve", "--manifests"].map(str::to_owned).into();
        args.push(manifests.display().to_string());
        args.extend(["--xds-socket".to_owned(), socket.display().to_string()]);
        args.extend(["--xds-address".to_owned(), Self::tcp().to_string()]);
        // The pods' own network is closed.
        if !options.contains(&"--xds-tls-cert") {
            args.push("--xds-insecure".to_owned());
        }
        args.extend(options.iter().map(|&option| option.to_owned()));
        let program = places::program("aether")?;
        let mut spec = Spec::new(&program, args, &folder.path().join("aether.log"));
        spec.netns = Some(net.node().name().to_owned());
        Ok(Self { process: Process::start(&spec)?, spec, socket, _folder: folder })
    }

    /// Where it serves xDS by TCP.
    pub fn tcp() -> SocketAddr {
        SocketAddr::new(NODE_V4.into(), 18000)
    }

    /// Where it serves xDS by Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until its Unix socket takes connections.
    pub async fn serving(&mut self, limit: Duration) -> Result<()> {
        let start = tokio::time::Instant::now();
        // A killed one leaves its socket file behind, and connecting to that is refused.
        while UnixStream::connect(&self.socket).await.is_err() {
            self.process.must_run()?;
            if start.elapsed() > limit {
                let log = tail(&self.log(), 30);
                bail!("aether does not serve after {limit:?}; its last words:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// A bootstrap for the Envoy of this node id, as `aether bootstrap` prints it with these further options.
    pub fn bootstrap(&self, node: &str, over: Over, options: &[&str]) -> Result<String> {
        let mut command = Command::new(places::program("aether")?);
        command.args(["bootstrap", "--node", node]);
        match over {
            Over::Socket => command.arg("--xds-socket").arg(&self.socket),
            Over::Tcp => command.arg("--xds-address").arg(Self::tcp().to_string()),
        };
        output(command.args(options))
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Ends it with SIGTERM and waits.
    pub fn stop(&mut self, limit: Duration) -> Result<std::process::ExitStatus> {
        self.process.signal(Signal::SIGTERM)?;
        self.process.wait(limit)
    }

    /// Starts it anew after its end, with the same options and the same log.
    pub fn restart(&mut self) -> Result<()> {
        if self.process.ended()?.is_none() {
            bail!("it still runs: kill or stop it first");
        }
        self.process = Process::start(&self.spec)?;
        Ok(())
    }

    /// The process, to signal it or to ask for its id.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// Runs a command of `aether` to its end: `run(&["check", "--manifests", "…"])`.
pub fn run(args: &[&str]) -> Result<Output> {
    let program = places::program("aether")?;
    Command::new(&program)
        .args(args)
        .output()
        .with_context(|| format!("running {}", program.display()))
}
