//! Groups of options that several commands share.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::domains::Domains;
use super::environment::pod_namespace;
use super::values::{Namespaces, Ports, Resolvers, namespace, switch};
use crate::translate::{CaptureMode, DnsFilter};
use crate::{index, translate};

/// Where objects come from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Source of objects")]
pub struct Source {
    /// Folder of manifests: YAML and JSON files, subfolders included.
    ///
    /// Without it, objects come from the Kubernetes API server of the kubeconfig (--kubeconfig, else
    /// KUBECONFIG, else ~/.kube/config), or else from that of the cluster in which this is a pod.
    ///
    /// Namespaces, Nodes, ServiceAccounts, Services, EndpointSlices and Pods count, other kinds
    /// are ignored. `kubectl get ns,nodes,sa,svc,endpointslices,pods -A -o yaml` writes such a
    /// file of a cluster.
    #[arg(long, env = "AETHER_MANIFESTS", value_name = "DIR")]
    pub manifests: Option<PathBuf>,

    /// Kubeconfig that names the API server and who we are to it.
    #[arg(long, env = "AETHER_KUBECONFIG", value_name = "FILE", conflicts_with = "manifests")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, where it is not to be its current one.
    #[arg(
        long,
        env = "AETHER_KUBE_CONTEXT",
        value_name = "NAME",
        visible_alias = "context",
        conflicts_with = "manifests"
    )]
    pub kube_context: Option<String>,
}

/// Where objects come from, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objects {
    /// A folder of manifests.
    Folder(PathBuf),
    /// A Kubernetes API server.
    ApiServer {
        /// The kubeconfig; the usual ones where there is none.
        kubeconfig: Option<PathBuf>,
        /// The context of it; its current one where there is none.
        context: Option<String>,
    },
}

impl Source {
    /// What was asked for.
    pub fn objects(&self) -> Objects {
        match &self.manifests {
            Some(folder) => Objects::Folder(folder.clone()),
            None => Objects::ApiServer {
                kubeconfig: self.kubeconfig.clone(),
                context: self.kube_context.clone(),
            },
        }
    }
}

/// The mesh's names, and the namespaces outside of it: the same for all that decide on them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The mesh")]
pub struct Mesh {
    #[command(flatten)]
    domains: Domains,

    /// Namespaces never touched, besides kube-system, kube-public, kube-node-lease and our own.
    #[arg(
        long,
        env = "AETHER_EXCLUDED_NAMESPACES",
        value_name = "NAMESPACES",
        default_value = "spire-system,spire-server,spire-mgmt"
    )]
    excluded_namespaces: Namespaces,

    /// Our own namespace, which is never touched either. By default that of the pod; none outside a
    /// cluster.
    #[arg(long, env = "AETHER_OWN_NAMESPACE", value_name = "NAMESPACE", value_parser = namespace)]
    own_namespace: Option<String>,
}

impl Mesh {
    /// Our own namespace: the one that was named, else that of the pod that this is.
    fn own_namespace(&self) -> Option<String> {
        self.own_namespace.clone().or_else(pod_namespace)
    }

    /// What the index is set to, with ports that are not inspected.
    ///
    /// # Errors
    /// Where the two domains do not go together.
    pub fn settings(&self, server_first_ports: Vec<u16>) -> Result<index::Settings> {
        let names = self.domains.names()?;
        let own = self.own_namespace();
        let never = self.excluded_namespaces.0.iter().chain(&own);
        Ok(index::Settings::new(names, never.map(String::as_str), server_first_ports))
    }
}

/// What shapes the resources, the same for `serve`, `render` and `check`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What proxies are told")]
pub struct Shaping {
    #[command(flatten)]
    mesh: Mesh,

    /// What the rules in a pod redirect: all TCP, or TCP to port 18081 alone.
    #[arg(long, env = "AETHER_CAPTURE_MODE", value_name = "MODE", default_value = "redirect-all",
          value_parser = PossibleValuesParser::new(["redirect-all", "scoped"])
              .try_map(|mode| mode.parse::<CaptureMode>()))]
    capture_mode: CaptureMode,

    /// Destination ports where connections are not inspected, since the server speaks first
    /// there. HTTP is not recognised on them. Redirect-all mode alone.
    #[arg(
        long,
        env = "AETHER_SERVER_FIRST_PORTS",
        value_name = "PORTS",
        default_value = "21,22,25,110,119,143,389,514,587,2003,3306,4222,5900,9418"
    )]
    server_first_ports: Ports,

    /// Give each pod a DNS listener (dns_filter, UDP port 18053) that answers mesh names.
    #[arg(long, env = "AETHER_DNS_FILTER", value_parser = switch)]
    dns_filter: bool,

    /// Resolvers to which the DNS listener forwards unknown names, separated by commas.
    /// Without any, such a name does not exist (NXDOMAIN).
    ///
    /// Each change of the mesh's names replaces the DNS listener, and Envoy answers the queries
    /// that it is forwarding at that moment with NXDOMAIN. Where names change often, prefer a
    /// resolver outside of Envoy.
    #[arg(long, env = "AETHER_DNS_UPSTREAM", value_name = "ADDRESSES", requires = "dns_filter")]
    dns_upstream: Option<Resolvers>,
}

impl Shaping {
    /// Our own namespace, where there is one.
    pub fn own_namespace(&self) -> Option<String> {
        self.mesh.own_namespace()
    }

    /// What the translation and the index are set to.
    ///
    /// # Errors
    /// Where the two domains do not go together.
    pub fn settings(&self) -> Result<(translate::Settings, index::Settings)> {
        let ports: Vec<u16> = self.server_first_ports.0.iter().copied().collect();
        let inspects = self.capture_mode == CaptureMode::RedirectAll;
        let index = self.mesh.settings(if inspects { ports.clone() } else { Vec::new() })?;
        let names = index.names.clone();
        let dns = self
            .dns_filter
            .then(|| DnsFilter { upstream: self.dns_upstream.clone().unwrap_or_default().0 });
        let translate =
            translate::Settings { names, mode: self.capture_mode, server_first_ports: ports, dns };
        Ok((translate, index))
    }
}

/// How lines of the log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The log, which goes to stderr.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Log (on stderr)")]
pub struct Log {
    /// What is logged: a level, or levels by module, as in `info,aether::xds=debug`.
    #[arg(long = "log", env = "AETHER_LOG", value_name = "FILTER", default_value = "info",
          value_parser = log_filter, global = true)]
    filter: Arc<str>,

    /// How it looks.
    #[arg(
        long = "log-format",
        env = "AETHER_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        global = true
    )]
    format: LogFormat,
}

/// Takes a filter that can be read.
fn log_filter(text: &str) -> Result<Arc<str>, String> {
    // A bare word that is no level would name a module, and switch everything off in silence.
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let strange = text.split(',').map(str::trim).find(|word| {
        let bare = !word.is_empty() && !word.contains(['=', '[']) && !word.starts_with("aether");
        bare && !levels.contains(&word.to_ascii_lowercase().as_str())
    });
    if let Some(word) = strange {
        return Err(format!(
            "{word:?} is no level: write off, error, warn, info, debug or trace, or levels by module"
        ));
    }
    EnvFilter::try_new(text).map(|_| text.into()).map_err(|error| {
        format!("{error}: write error, warn, info, debug or trace, or levels by module")
    })
}

impl Log {
    /// Starts it, for the whole process.
    pub fn start(&self) -> Result<()> {
        // What the client of the API server meets is said by us, once and with the way out; its own
        // lines, one for each attempt, are there for whoever names it.
        let filter = format!("kube_client=off,kube_runtime=off,{}", self.filter);
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_new(filter)?)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
        let started = match self.format {
            LogFormat::Text => log.try_init(),
            LogFormat::Json => log.json().flatten_event(true).try_init(),
        };
        started.map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))
    }
}
