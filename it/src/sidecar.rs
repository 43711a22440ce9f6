//! A pod that is captured, and does not know it.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::aether::{Aether, Over};
use crate::client::{self, Answer};
use crate::envoy::{Envoy, PASSTHROUGH};
use crate::net::{Net, Pod, Redirect};

/// A pod with redirection rules and an Envoy that gets its configuration from [`Aether`].
#[derive(Debug)]
pub struct Sidecar {
    /// Its Envoy. Before the pod, in which it runs.
    pub envoy: Envoy,
    /// The pod.
    pub pod: Pod,
    namespace: String,
    name: String,
}

impl Sidecar {
    /// Makes the pod with these addresses and starts its Envoy; `options` are those of `aether bootstrap`.
    pub fn start(
        net: &Net,
        aether: &Aether,
        (namespace, name): (&str, &str),
        addresses: &[IpAddr],
        redirect: &Redirect,
        (over, options): (Over, &[&str]),
    ) -> Result<Self> {
        let pod = net.pod_at(addresses)?;
        pod.redirect(redirect)?;
        let bootstrap = aether.bootstrap(&format!("pod/{namespace}/{name}"), over, options)?;
        let envoy = Envoy::start(&pod, &bootstrap)?;
        Ok(Self { envoy, pod, namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Waits until its Envoy is ready.
    pub async fn ready(&mut self, limit: Duration) -> Result<()> {
        let ready = self.envoy.ready(limit).await;
        ready.with_context(|| format!("the Envoy of {self}"))
    }

    /// GETs `/` from this address under this host, on a connection of its own.
    pub async fn get(&self, to: SocketAddr, host: &str) -> Result<Answer> {
        let asked = host.to_owned();
        let get = async move { client::get(to, &asked, "/").await };
        let answer = self.pod.run(get).await;
        answer.with_context(|| format!("{self} asks {to} for {host:?}"))
    }

    /// Waits until its Envoy's configuration names this: a chain, a virtual host, a cluster.
    pub async fn knows(&self, name: &str, limit: Duration) -> Result<()> {
        self.waits(name, true, limit).await
    }

    /// Waits until its Envoy's configuration does not name this any more.
    pub async fn forgot(&self, name: &str, limit: Duration) -> Result<()> {
        self.waits(name, false, limit).await
    }

    async fn waits(&self, name: &str, wanted: bool, limit: Duration) -> Result<()> {
        let quoted = format!("\"{name}\"");
        let ask = || async {
            let found = self.envoy.admin("/config_dump").await?.contains(&quoted);
            ensure!(found == wanted, "{self}: the configuration says {found}");
            Ok(())
        };
        crate::eventually(name, limit, ask).await
    }
}

/// A pod without any control plane, whose Envoy passes on what these rules redirect to it.
pub async fn passing(net: &Net, redirect: &Redirect, limit: Duration) -> Result<(Pod, Envoy)> {
    let pod = net.pod()?;
    pod.redirect(redirect)?;
    let mut envoy = Envoy::start(&pod, PASSTHROUGH)?;
    envoy.ready(limit).await?;
    Ok((pod, envoy))
}

impl Display for Sidecar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
