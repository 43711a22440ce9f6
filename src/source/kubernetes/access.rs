//! How the API server is found and spoken to.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use kube::Client;
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(4);

/// How long an answer may take, or a connection be silent that has one under way. Longer than a
/// watch is left without a word.
const SILENCE: Duration = Duration::from_mins(1);

/// Which API server, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The kubeconfig to use. Without one: that of `KUBECONFIG`, else `~/.kube/config`, else the
    /// account of the pod that we run in.
    pub kubeconfig: Option<PathBuf>,
    /// The context to use of it; its current one if there is none.
    pub context: Option<String>,
}

/// An API server that is spoken to.
#[derive(Clone)]
pub struct Connection {
    /// The client. Cheap to clone; all clones share their connections. A request of it is not
    /// retried by itself.
    pub client: Client,
    /// The API server's address, for words.
    pub server: String,
    /// The namespace that the configuration names: in a cluster, our own.
    pub namespace: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Why no API server can be spoken to. Whether one answers is not known before it is asked.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Neither a kubeconfig nor a pod's account.
    #[error(
        "no Kubernetes API server is known: there is no kubeconfig ({kubeconfig}), and this is no pod of a cluster ({pod}); name a kubeconfig with --kubeconfig FILE or KUBECONFIG, or a folder of manifests with --manifests DIR"
    )]
    Nowhere {
        /// Why there is no kubeconfig.
        kubeconfig: KubeconfigError,
        /// Why there is no account.
        pod: InClusterError,
    },
    /// A context is asked for, and there is no kubeconfig that could have one.
    #[error(
        "the context {context:?} is asked for, but there is no kubeconfig ({cause}): name one with --kubeconfig FILE"
    )]
    ContextOfNothing {
        /// The context.
        context: String,
        /// Why there is no kubeconfig.
        cause: KubeconfigError,
    },
    /// The kubeconfig has no such context.
    #[error("the kubeconfig has no context {context:?}; it has {known}")]
    NoSuchContext {
        /// The context.
        context: String,
        /// Those it has, in words.
        known: String,
    },
    /// The kubeconfig names no context as its current one.
    #[error("the kubeconfig has no current context: name one with --context; it has {known}")]
    NoContext {
        /// Those it has, in words.
        known: String,
    },
    /// The kubeconfig cannot be used.
    #[error(
        "{} cannot be used: {cause}; correct it, or name another with --kubeconfig",
        path.as_ref().map_or("the kubeconfig".to_owned(), |path| format!("the kubeconfig {}", path.display()))
    )]
    Kubeconfig {
        /// The file, where one was named.
        path: Option<PathBuf>,
        /// Why.
        cause: KubeconfigError,
    },
    /// A proxy is asked for that we cannot go through.
    #[error(
        "the API server would be asked through {0}, and no such proxy can be gone through: remove proxy-url from the cluster in the kubeconfig, or HTTPS_PROXY from the environment, and let the server's own address be reached, or a tunnel to it (ssh -L) on this machine"
    )]
    Proxy(http::Uri),
    /// Certificates or keys cannot be used.
    #[error("no connection can be made as the configuration asks for it: {0}; correct it there")]
    Client(kube::Error),
}

/// Makes a client. Nothing is asked of the API server yet. Needs a tokio runtime.
///
/// # Errors
/// Where no API server is known, or the configuration cannot be used.
pub async fn connect(access: &Access) -> Result<Connection, AccessError> {
    let mut config = config(access).await?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    // A connection that was idle before a request has not been silent since.
    config.reset_reader_on_write = true;
    // Whoever asks knows best when to ask again; here it would happen unseen, for minutes.
    config.default_retry = false;
    let name = HeaderValue::from_static(concat!("aether/", env!("CARGO_PKG_VERSION")));
    config.headers.push((http::header::USER_AGENT, name));
    if is_loopback(&config.cluster_url) {
        // No proxy leads to this very machine.
        config.proxy_url = None;
    }
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(unusable)?;
    Ok(Connection { client, server, namespace })
}

/// Why no client can be made.
fn unusable(error: kube::Error) -> AccessError {
    match error {
        kube::Error::ProxyProtocolDisabled { proxy_url, .. }
        | kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            AccessError::Proxy(without_user(*proxy_url))
        }
        other => AccessError::Client(other),
    }
}

/// An address without the name and password that may stand in it: it goes into a log.
fn without_user(uri: http::Uri) -> http::Uri {
    let mut parts = uri.into_parts();
    parts.authority = parts.authority.and_then(|authority| {
        let host = authority.as_str().rsplit('@').next()?;
        host.parse().ok()
    });
    http::Uri::from_parts(parts).unwrap_or_default()
}

async fn config(access: &Access) -> Result<Config, AccessError> {
    let unusable = |cause| AccessError::Kubeconfig { path: access.kubeconfig.clone(), cause };
    let read = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path).map_err(unusable)?,
        None => match Kubeconfig::read() {
            Ok(kubeconfig) => kubeconfig,
            Err(absent) if is_absent(&absent) => {
                if let Some(context) = access.context.clone() {
                    return Err(AccessError::ContextOfNothing { context, cause: absent });
                }
                let nowhere = |pod| AccessError::Nowhere { kubeconfig: absent, pod };
                return Config::incluster().map_err(nowhere);
            }
            Err(error) => return Err(unusable(error)),
        },
    };
    let context = access.context.clone().or_else(|| read.current_context.clone());
    let Some(context) = context.filter(|context| !context.is_empty()) else {
        return Err(AccessError::NoContext { known: contexts(&read) });
    };
    let Some(named) = read.contexts.iter().find(|named| named.name == context) else {
        return Err(AccessError::NoSuchContext { known: contexts(&read), context });
    };
    let authority = named.context.as_ref().and_then(|context| authority(&read, &context.cluster));
    let options = KubeConfigOptions { context: Some(context), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    let mut config = config.map_err(unusable)?;
    // Read again now and then, so that an authority may be replaced while we run.
    config.root_cert_file = authority;
    Ok(config)
}

/// The file of a cluster's certificate authority, where it is a file.
fn authority(kubeconfig: &Kubeconfig, cluster: &str) -> Option<PathBuf> {
    let named = kubeconfig.clusters.iter().find(|named| named.name == cluster)?;
    let cluster = named.cluster.as_ref()?;
    let inline = cluster.certificate_authority_data.as_ref().is_some_and(|data| !data.is_empty());
    let path = cluster.certificate_authority.as_ref().filter(|path| !path.is_empty());
    path.filter(|_| !inline).map(|path| Path::new(path).to_owned())
}

/// Whether there is no kubeconfig at all, as in a pod. One that `KUBECONFIG` names must be there.
fn is_absent(error: &KubeconfigError) -> bool {
    let named = std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
    let absent = match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    absent && !named
}

fn contexts(kubeconfig: &Kubeconfig) -> String {
    let names: Vec<_> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn is_loopback(server: &http::Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
