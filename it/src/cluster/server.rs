//! The API server while it runs: ended, started again, and given another certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Cluster;
use super::authority::{Authority, Serving};
use crate::eventually;
use crate::process::Process;

/// How long the API server may take to be ready, on a machine that is busy with other tests.
const READY: Duration = Duration::from_secs(90);

impl Cluster {
    /// Kills the API server (SIGKILL), as when its machine dies.
    pub fn stop_api_server(&self) -> Result<()> {
        self.api_server().process.kill().map(drop)
    }

    /// Starts it again at the same address with the same options, and waits until it is ready.
    pub async fn start_api_server(&self) -> Result<()> {
        {
            let mut running = self.api_server();
            ensure!(running.process.ended()?.is_some(), "the API server runs: stop it first");
            running.process = Process::start(&running.spec)?;
        }
        self.wait_ready().await
    }

    /// Waits until the API server says that it is ready.
    pub async fn wait_ready(&self) -> Result<()> {
        let client = self.client().await?;
        let start = tokio::time::Instant::now();
        loop {
            self.api_server().process.must_run()?;
            self.etcd().must_run()?;
            let ask = client.request_text(Request::get("/readyz").body(Vec::new())?);
            match timeout(Duration::from_secs(5), ask).await {
                Ok(Ok(_)) => return Ok(()),
                last if start.elapsed() > READY => {
                    let last = last.map(|answer| answer.map_err(|error| error.to_string()));
                    anyhow::bail!("the API server is not ready after {READY:?}: {last:?}");
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Gives the API server a new key and certificate of the same authority and waits until it presents them: new
    /// connections see it, those that exist go on.
    pub async fn replace_serving_certificate(&self) -> Result<()> {
        let serving = sign(&self.authority, self.address())?;
        write(self.folder.path(), &serving)?;
        let shown = || async {
            let now = self.presented().await?;
            ensure!(now == serving.der, "it still presents the old certificate");
            Ok(())
        };
        eventually("a new serving certificate", Duration::from_mins(2), shown).await
    }

    /// Starts the API server anew with a certificate of another authority, and returns both authorities, PEM, as
    /// kubeconfigs name them from then on. Clients that were made before do not believe it.
    pub async fn replace_authority(&self) -> Result<String> {
        let next = Authority::new("the rig's next Kubernetes")?;
        self.stop_api_server()?;
        write(self.folder.path(), &sign(&next, self.address())?)?;
        let both = self.authority.pem() + &next.pem();
        let fresh = self.folder.path().join("ca.crt.new");
        std::fs::write(&fresh, &both)?;
        std::fs::rename(fresh, self.folder.path().join("ca.crt"))?;
        self.start_api_server().await?;
        Ok(both)
    }

    /// The certificate that a new connection is shown now, DER.
    async fn presented(&self) -> Result<Vec<u8>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.authority.der()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connect = async {
            let stream = TcpStream::connect(self.address()).await?;
            let name = ServerName::IpAddress(self.address().ip().into());
            anyhow::Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
        };
        let stream = timeout(Duration::from_secs(10), connect).await??;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        Ok(shown.context("no certificate was presented")?.to_vec())
    }
}

/// A new serving certificate for all names under which an API server at this address is reached.
pub(super) fn sign(authority: &Authority, address: SocketAddr) -> Result<Serving> {
    let own = address.ip().to_string();
    let services = ["kubernetes.default", "kubernetes.default.svc", "10.96.0.1"];
    // And the node of a `Net`, where a proxy may stand.
    let others = ["localhost", "127.0.0.1", "10.244.0.1", &own];
    authority.serving(&[&services[..], &others[..]].concat())
}

/// Puts it where the API server reads it, each file at once.
pub(super) fn write(folder: &Path, serving: &Serving) -> Result<()> {
    for (name, text) in [("serving.crt", &serving.certificate), ("serving.key", &serving.key)] {
        let fresh = folder.join(format!("{name}.new"));
        std::fs::write(&fresh, text)?;
        std::fs::rename(fresh, folder.join(name))?;
    }
    Ok(())
}
