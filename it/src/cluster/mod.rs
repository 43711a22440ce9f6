//! A real Kubernetes API server on this machine, with as much of a cluster around it as a test asks for.
//!
//! etcd and kube-apiserver always; the controllers, the scheduler and fake kubelets (kwok) by [`Options`]. Everything
//! is a child process that dies with us, and keeps its files and logs in one folder. A test that fails prints the end
//! of each log.

mod access;
mod address;
mod authority;
mod etcd;
mod kubectl;
mod options;
mod parts;
mod pipe;
mod proxy;
mod server;
mod wait;

pub use access::Identity;
pub use address::Claim;
pub use authority::{Authority, Serving};
pub use options::{FakeNode, Options};
pub use proxy::{End, Proxy};

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::KeyPair;
use tempfile::TempDir;

use crate::process::{Process, Spec, tail};
use crate::{net, places};

use parts::Files;

/// The port of every API server of the rig, each at an address of its own. No connection leaves from it.
const PORT: u16 = 6443;

/// A running cluster. Dropped, all of it ends.
#[derive(Debug)]
pub struct Cluster {
    // In the order in which they end: who asks before who answers.
    around: Vec<Process>,
    api_server: Mutex<Running>,
    etcd: Mutex<Process>,
    claim: Claim,
    authority: Authority,
    admin: Identity,
    users: Vec<Identity>,
    // After the processes, which have files in it.
    folder: TempDir,
}

/// A process that can be started again.
#[derive(Debug)]
struct Running {
    process: Process,
    spec: Spec,
}

impl Cluster {
    /// Starts one and waits until it is ready: the API server, and where there are such, the first ServiceAccount and
    /// all nodes.
    pub async fn start(options: Options) -> Result<Self> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(net::sweep);
        let folder = places::folder()?;
        std::fs::create_dir(folder.path().join("home"))?;
        let files = Files(folder.path());
        let etcd = Process::start(&files.etcd()?)?;
        let claim = Claim::new(PORT)?;
        let authority = Authority::new("the rig's Kubernetes")?;
        std::fs::write(folder.path().join("ca.crt"), authority.pem())?;
        let accounts = KeyPair::generate()?;
        std::fs::write(folder.path().join("accounts.key"), accounts.serialize_pem())?;
        std::fs::write(folder.path().join("accounts.pub"), accounts.public_key_pem())?;
        let serving = server::sign(&authority, claim.address())?;
        server::write(folder.path(), &serving)?;
        let (admin, users) = write_tokens(folder.path(), &options)?;

        let spec = files.api_server(claim.address(), &options)?;
        let process = Process::start(&spec)?;
        let mut cluster = Self {
            around: Vec::new(),
            api_server: Mutex::new(Running { process, spec }),
            etcd: Mutex::new(etcd),
            claim,
            authority,
            admin,
            users,
            folder,
        };
        let started = cluster.finish(&options).await;
        started.with_context(|| format!("a cluster did not start:\n{}", cluster.logs()))?;
        Ok(cluster)
    }

    /// Starts what stands around the API server, which has just been started.
    async fn finish(&mut self, options: &Options) -> Result<()> {
        self.wait_ready().await?;
        let kubeconfig = self.kubeconfig(&self.admin)?;
        let files = Files(self.folder.path());
        let mut specs = Vec::new();
        if options.controllers {
            specs.push(files.controllers(&kubeconfig, options)?);
        }
        if !options.nodes.is_empty() {
            specs.extend([files.scheduler(&kubeconfig)?, files.kubelets(&kubeconfig)?]);
        }
        for spec in specs {
            self.around.push(Process::start(&spec)?);
        }
        for node in &options.nodes {
            self.add_node(node).await?;
        }
        let mut around = std::mem::take(&mut self.around);
        let ended = async {
            loop {
                if let Err(ended) = around.iter_mut().try_for_each(Process::must_run) {
                    return ended;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let ready = async {
            if options.controllers {
                self.wait_for_namespace("default").await?;
            }
            self.wait_for_nodes(options.nodes.len()).await
        };
        let done = tokio::select! {
            ended = ended => Err(ended),
            ready = ready => ready.map(drop),
        };
        self.around = around;
        done
    }

    /// Where the API server listens: a loopback address of its own, the same for as long as the cluster lives.
    pub fn address(&self) -> SocketAddr {
        self.claim.address()
    }

    /// The certificate authority of the API server, PEM.
    pub fn authority(&self) -> String {
        self.authority.pem()
    }

    /// The folder of its files and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The end of each program's log.
    pub fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let mut logs: Vec<_> = entries.map(|entry| entry.path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        let shown = logs.iter().map(|path| {
            let text = std::fs::read(path).unwrap_or_default();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format!("== {name}\n{}\n", tail(&String::from_utf8_lossy(&text), 25))
        });
        shown.collect()
    }

    /// The API server's process. A panic elsewhere does not change what it is.
    fn api_server(&self) -> MutexGuard<'_, Running> {
        self.api_server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn etcd(&self) -> MutexGuard<'_, Process> {
        self.etcd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the logs of the cluster end so:\n{}", self.logs());
        }
    }
}

/// Writes the file of tokens; the administrator is in it, and the users of the options.
fn write_tokens(folder: &Path, options: &Options) -> Result<(Identity, Vec<Identity>)> {
    let identity = |name: &str| Identity { name: name.to_owned(), token: format!("token-{name}") };
    let mut lines = vec!["token-admin,admin,admin,\"system:masters\"".to_owned()];
    let mut users = Vec::new();
    for user in &options.users {
        let (name, groups) = (&user.name, user.groups.join(","));
        lines.push(format!("token-{name},{name},{name},\"{groups}\""));
        users.push(identity(name));
    }
    std::fs::write(folder.join("tokens.csv"), lines.join("\n") + "\n")?;
    Ok((identity("admin"), users))
}
