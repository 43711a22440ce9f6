//! `aether serve`: the process itself.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use super::WrongOptions;
use super::access::{self, Access};
use super::kubernetes::{Kubernetes, Writing};
use super::options::{Objects, Shaping, Source};
use super::pins::PinnedNamespaces;
use super::values::{Address, Socket, Span};
use super::webhook;
use crate::xds::CanarySettings;
use crate::{index, run, translate};

/// Where proxies connect unless it is said otherwise.
pub const DEFAULT_SOCKET: &str = "/run/aether/xds.sock";

/// The heading of the options that say where proxies connect.
const PROXIES: &str = "Where proxies connect";

/// Serve proxies over xDS, following the objects as they change.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    #[command(flatten)]
    source: Source,

    /// TCP address for proxies over xDS, or `none`.
    #[arg(
        long,
        env = "AETHER_XDS_ADDRESS",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:18000",
          help_heading = PROXIES)]
    xds_address: Address,

    /// Unix socket for proxies over xDS, or `none`
    /// [default: /run/aether/xds.sock; where that one cannot be made, a warning, and TCP alone].
    #[arg(long, env = "AETHER_XDS_SOCKET", value_name = "PATH", help_heading = PROXIES)]
    xds_socket: Option<Socket>,

    /// TCP address for health and metrics over HTTP, or `none`
    /// [default: 127.0.0.1:8080; where that one is taken, a warning, and neither].
    #[arg(
        long,
        env = "AETHER_ADMIN_ADDRESS",
        value_name = "ADDRESS",
        help_heading = "Health and metrics"
    )]
    admin_address: Option<Address>,

    #[command(flatten)]
    access: Access,

    #[command(flatten)]
    pins: PinnedNamespaces,

    #[command(flatten)]
    canary: Canary,

    #[command(flatten)]
    names: NamesFile,

    #[command(flatten)]
    shaping: Shaping,

    #[command(flatten)]
    kubernetes: Kubernetes,

    #[command(flatten)]
    webhook: webhook::Webhook,

    #[command(flatten)]
    injection: webhook::Injection,
}

/// Who is asked first.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PROXIES)]
struct Canary {
    /// How many proxies, of both kinds, get each new snapshot first. The others get it when these
    /// accepted it; what they refuse goes no further. 0: all get it at once.
    #[arg(long, env = "AETHER_CANARY", value_name = "N", default_value_t = 0)]
    canary: usize,

    /// How long they have. A proxy accepts clusters only when they are warm.
    #[arg(
        long,
        env = "AETHER_CANARY_WAIT",
        value_name = "SPAN",
        default_value = "5s",
        value_parser = canary_wait
    )]
    canary_wait: Duration,
}

/// Takes a time in which a proxy can answer, and for which the mesh can wait.
fn canary_wait(text: &str) -> Result<Duration, String> {
    let Span(span) = text.parse()?;
    if !(Duration::from_millis(100)..=Duration::from_mins(5)).contains(&span) {
        return Err("proxies need time to answer, and the mesh must not wait for long: from 100ms to 5m, as in 5s".to_owned());
    }
    Ok(span)
}

/// The file of mesh names.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "File of mesh names")]
struct NamesFile {
    /// File for the mesh's names, which `mesh-dns` answers from. Its folder is made if it is
    /// missing. Without this option there is none.
    #[arg(long, env = "AETHER_MESH_DNS_SNAPSHOT", value_name = "PATH")]
    mesh_dns_snapshot: Option<PathBuf>,

    /// How often the file is stamped anew while nothing changes.
    #[arg(
        long,
        env = "AETHER_MESH_DNS_HEARTBEAT",
        value_name = "SPAN",
        default_value = "60s",
        value_parser = heartbeat
    )]
    mesh_dns_heartbeat: Duration,
}

/// Takes a span in which a stamp says something.
fn heartbeat(text: &str) -> Result<Duration, String> {
    let Span(span) = text.parse()?;
    if span < Duration::from_secs(1) {
        return Err("a stamp counts seconds: write 1s or more, as in 60s".to_owned());
    }
    Ok(span)
}

/// Where health and metrics are served unless it is said otherwise.
pub const DEFAULT_ADMIN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

/// The address for health and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminAddress {
    /// None.
    Off,
    /// It was asked for: without it, nothing starts.
    Required(SocketAddr),
    /// The default. A second process on one machine finds it taken, which costs a warning.
    IfPossible(SocketAddr),
}

/// The Unix socket that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XdsSocket {
    /// None.
    Off,
    /// It was asked for: without it, nothing starts.
    Required(PathBuf),
    /// The default. Where it cannot be made, as by a user who may not write to `/run`, that costs
    /// a warning, as long as TCP is served.
    IfPossible(PathBuf),
}

/// What `serve` was asked for, checked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where objects come from.
    pub objects: Objects,
    /// The TCP address; `None`: no TCP. Port 0 takes any that is free.
    pub xds_address: Option<SocketAddr>,
    /// The Unix socket.
    pub xds_socket: XdsSocket,
    /// Who may connect, and how much one may take.
    pub access: access::Options,
    /// The address for health and metrics.
    pub admin: AdminAddress,
    /// Who is asked first; `None`: nobody.
    pub canary: Option<CanarySettings>,
    /// The file of mesh names, and how often it is stamped.
    pub names: Option<(PathBuf, Duration)>,
    /// The folder of pinned network namespaces.
    pub pins: Option<PathBuf>,
    /// What is written to the API server.
    pub writing: Writing,
    /// Our own namespace, where it was named.
    pub own_namespace: Option<String>,
    /// What the translation is set to.
    pub translate: translate::Settings,
    /// What the index is set to.
    pub index: index::Settings,
    /// The webhook; `None`: there is none.
    pub webhook: Option<webhook::Options>,
}

impl Serve {
    /// The options, checked together.
    pub fn options(&self) -> Result<Options> {
        let (translate, index) = self.shaping.settings()?;
        let xds_address = self.xds_address.0;
        let xds_socket = match (&self.xds_socket, xds_address) {
            (Some(Socket::At(path)), _) => XdsSocket::Required(path.clone()),
            (None, Some(_)) => XdsSocket::IfPossible(DEFAULT_SOCKET.into()),
            (None, None) => XdsSocket::Required(DEFAULT_SOCKET.into()),
            (Some(Socket::Off), Some(_)) => XdsSocket::Off,
            (Some(Socket::Off), None) => bail!(WrongOptions(
                "neither --xds-address nor --xds-socket: no proxy could connect, so leave one of them on"
            )),
        };
        let access = self.access.options(xds_address)?;
        let admin = match self.admin_address {
            None => AdminAddress::IfPossible(DEFAULT_ADMIN),
            Some(Address(None)) => AdminAddress::Off,
            Some(Address(Some(address))) => AdminAddress::Required(address),
        };
        let objects = self.source.objects();
        let Canary { canary: streams, canary_wait: wait } = self.canary;
        let canary = (streams > 0).then_some(CanarySettings { streams, wait });
        let NamesFile { mesh_dns_snapshot, mesh_dns_heartbeat } = &self.names;
        let names = mesh_dns_snapshot.clone().map(|path| (path, *mesh_dns_heartbeat));
        let own_namespace = self.shaping.own_namespace();
        let writing = self.kubernetes.options(own_namespace.as_deref())?;
        let webhook = self.webhook.options(&self.injection, &index)?;
        Ok(Options {
            objects,
            xds_address,
            xds_socket,
            access,
            admin,
            canary,
            names,
            pins: self.pins.folder(),
            writing,
            own_namespace,
            translate,
            index,
            webhook,
        })
    }

    /// Runs until it is told to stop.
    pub fn run(&self) -> Result<()> {
        let options = self.options()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(run::serve(options))
    }
}
