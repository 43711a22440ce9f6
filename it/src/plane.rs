//! `aether serve` that follows a Kubernetes API server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use http::StatusCode;
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::process::{Process, Spec, output};
use crate::wire::Wire;
use crate::{eventually, places};

/// The name of the xDS socket in the folder of a process.
const SOCKET: &str = "xds.sock";

/// The arguments of a process that has its socket in this folder.
fn serve(folder: &Path, options: &[&str]) -> Vec<String> {
    let mut args = vec!["serve".to_owned()];
    args.extend(["--xds-socket".to_owned(), folder.join(SOCKET).display().to_string()]);
    args.extend(["--xds-address", "none", "--admin-address", "127.0.0.1:0"].map(str::to_owned));
    args.extend(options.iter().map(|&option| option.to_owned()));
    args
}

/// The program, in our own network namespace. Dropped, it is killed.
#[derive(Debug)]
pub struct Plane {
    process: Process,
    spec: Spec,
    socket: PathBuf,
    // After the process, which has its socket in it.
    _folder: TempDir,
}

impl Plane {
    /// Starts it with this kubeconfig and these options, its xDS on a Unix socket and health and metrics on any port.
    pub fn start(kubeconfig: &Path, options: &[&str]) -> Result<Self> {
        let folder = places::folder()?;
        let mut args = serve(folder.path(), options);
        args.extend(["--kubeconfig".to_owned(), kubeconfig.display().to_string()]);
        let spec = Spec::new(&places::program("aether")?, args, &folder.path().join("aether.log"));
        Self::run(spec, folder)
    }

    /// Starts it as in a pod: this folder is mounted where Kubernetes mounts a ServiceAccount, the API server is named
    /// by the environment, and there is no kubeconfig.
    pub fn in_pod(mounted: &Path, server: SocketAddr, options: &[&str]) -> Result<Self> {
        // In a mount namespace of its own, so that nothing is left behind.
        const MOUNT: &str = r#"mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
            ln -s "$1" /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@""#;
        let folder = places::folder()?;
        let mut args = ["--mount", "--", "sh", "-c", MOUNT, "sh"].map(str::to_owned).to_vec();
        args.push(mounted.display().to_string());
        args.push(places::program("aether")?.display().to_string());
        args.extend(serve(folder.path(), options));
        let log = folder.path().join("aether.log");
        let mut spec = Spec::new(Path::new("unshare"), args, &log);
        spec.env = vec![
            ("KUBERNETES_SERVICE_HOST".to_owned(), server.ip().to_string()),
            ("KUBERNETES_SERVICE_PORT".to_owned(), server.port().to_string()),
            ("HOME".to_owned(), folder.path().display().to_string()),
        ];
        Self::run(spec, folder)
    }

    fn run(spec: Spec, folder: TempDir) -> Result<Self> {
        let socket = folder.path().join(SOCKET);
        Ok(Self { process: Process::start(&spec)?, spec, socket, _folder: folder })
    }

    /// Where it serves xDS.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A bootstrap for the Envoy of this node id, as `aether bootstrap` prints it.
    pub fn bootstrap(&self, node: &str) -> Result<String> {
        let mut command = Command::new(places::program("aether")?);
        command.args(["bootstrap", "--node", node, "--xds-socket"]).arg(&self.socket);
        output(&mut command)
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The lines of its log that hold all of these words.
    pub fn lines(&self, words: &[&str]) -> Vec<String> {
        let log = self.log();
        let lines = log.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        lines.map(str::to_owned).collect()
    }

    /// Waits until a line of its log holds all of these words.
    pub async fn says(&self, words: &[&str], limit: Duration) -> Result<String> {
        let what = format!("{words:?} in the log of aether");
        let asked = eventually(&what, limit, || async {
            self.lines(words).into_iter().next().context("no such line")
        });
        asked.await.with_context(|| crate::process::tail(&self.log(), 30))
    }

    /// Where it serves health and metrics.
    pub fn admin(&self) -> Result<SocketAddr> {
        let lines = self.lines(&["health and metrics on HTTP"]);
        let line = lines.last().context("it has not said where its health is asked for")?;
        let (_, address) = line.rsplit_once("address=").context("the line names no address")?;
        Ok(address.trim().trim_matches('"').parse()?)
    }

    /// Asks for a path over HTTP.
    pub async fn get(&self, path: &str) -> Result<(StatusCode, String)> {
        let address = self.admin()?;
        let ask = async {
            let mut wire = Wire::new(TcpStream::connect(address).await?);
            wire.write(
                format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes(),
            )
            .await?;
            let head = wire.head().await?.context("no answer")?;
            let answer = wire.answer_body(head, false).await?;
            let status = StatusCode::from_u16(answer.head.status()?)?;
            anyhow::Ok((status, String::from_utf8_lossy(&answer.body).into_owned()))
        };
        tokio::time::timeout(Duration::from_secs(5), ask).await.context("no answer within 5 s")?
    }

    /// Waits until `/readyz` is answered with this status and holds these words; the answer.
    pub async fn readyz(&self, status: u16, words: &[&str], limit: Duration) -> Result<String> {
        let what = format!("{status} {words:?} of /readyz");
        let asked = eventually(&what, limit, || async {
            let (found, text) = self.get("/readyz").await?;
            let right = found.as_u16() == status && words.iter().all(|word| text.contains(word));
            anyhow::ensure!(right, "{found}: {text}");
            Ok(text)
        });
        asked.await.with_context(|| crate::process::tail(&self.log(), 30))
    }

    /// The value of a metric, by its name and labels as they stand in the text.
    pub async fn metric(&self, name: &str) -> Result<Option<f64>> {
        let (_, text) = self.get("/metrics").await?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.and_then(|value| value.parse().ok()))
    }

    /// The process, to signal it or to ask for its id.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it with SIGTERM and waits.
    pub fn stop(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.signal(Signal::SIGTERM)?;
        self.process.wait(limit)
    }

    /// Starts it anew after its end, with the same options and the same log.
    pub fn restart(&mut self) -> Result<()> {
        anyhow::ensure!(self.process.ended()?.is_some(), "it still runs: kill or stop it first");
        self.process = Process::start(&self.spec)?;
        Ok(())
    }
}
