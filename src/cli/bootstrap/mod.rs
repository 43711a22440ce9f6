//! `aether bootstrap`: what an Envoy needs in order to ask for everything else.
//!
//! The files in `envoy/` are what this prints, with comments on each choice; a test holds them
//! equal.

mod server;
mod tls;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use envoy_types::pb::envoy::config::bootstrap::v3::bootstrap::{
    DeferredStatOptions, DynamicResources, StaticResources,
};
use envoy_types::pb::envoy::config::bootstrap::v3::{self as envoy, Admin};
use envoy_types::pb::envoy::config::core::v3::{self as core, Node, address};
use prost::Message;

use super::WrongOptions;
use super::serve::DEFAULT_SOCKET;
use super::values::{HostPort, Reach, Socket};
use crate::descriptors;
use crate::model::NodeId;

/// Print an Envoy bootstrap for a node, as JSON.
///
/// Start Envoy with it: envoy --drain-time-s 30 -c bootstrap.json. The Envoy of a pod runs as uid 1337,
/// which the redirection in the pod skips. That of a node needs CAP_NET_ADMIN, for the mark that the
/// redirection skips, and CAP_SYS_ADMIN, for listening in the network namespaces of pods.
#[derive(Debug, Clone, Args)]
pub struct Bootstrap {
    /// Whose Envoy it is: `pod/<namespace>/<name>` or `node/<node name>`.
    #[arg(long, env = "AETHER_NODE", value_name = "ID")]
    node: NodeId,

    /// Unix socket of `aether serve`, or `none`; it is preferred where there is an address too
    /// [default: /run/aether/xds.sock, unless --xds-address is given].
    #[arg(long, env = "AETHER_XDS_SOCKET", value_name = "PATH")]
    xds_socket: Option<Socket>,

    /// TCP address of `aether serve`, by IP address or name, in place of the Unix socket; or `none`.
    #[arg(long, env = "AETHER_XDS_ADDRESS", value_name = "HOST:PORT")]
    xds_address: Option<Reach>,

    /// How Envoy asks: for changes alone (delta), or for the whole state of the world.
    #[arg(
        long,
        env = "AETHER_PROTOCOL",
        value_name = "PROTOCOL",
        default_value = "delta",
        value_enum
    )]
    protocol: Protocol,

    #[command(flatten)]
    tls: tls::ClientTls,

    #[command(flatten)]
    admin: AdminSocket,
}

/// The two protocols of xDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// Incremental.
    Delta,
    /// State of the world.
    Sotw,
}

/// Where Envoy's admin interface listens.
#[derive(Debug, Clone, Args)]
pub struct AdminSocket {
    /// Unix socket of Envoy's admin interface, from / on, or `none`.
    #[arg(
        long,
        env = "AETHER_ADMIN_SOCKET",
        value_name = "PATH",
        default_value = "/tmp/aether-admin.sock",
        value_parser = elsewhere
    )]
    admin_socket: Socket,
}

/// Where Envoy finds us.
enum Server {
    Unix(PathBuf),
    Tcp(HostPort, Option<tls::Secured>),
}

impl Bootstrap {
    /// Prints it.
    pub fn run(&self) -> Result<()> {
        let bootstrap = self.bootstrap()?.encode_to_vec();
        if let Some(secured) = self.tls.options()? {
            secured.write()?;
        }
        super::print(&descriptors::to_json("envoy.config.bootstrap.v3.Bootstrap", &bootstrap)?)
    }

    /// The bootstrap.
    pub(super) fn bootstrap(&self) -> Result<envoy::Bootstrap> {
        // One environment serves `serve`, which listens on both, and this command.
        let server = match (&self.xds_socket, &self.xds_address) {
            (Some(Socket::At(path)), _) if path.is_relative() => {
                anyhow::bail!(WrongOptions(
                    "--xds-socket is a relative path, and Envoy runs in a folder of its own: write it from / on"
                ))
            }
            (Some(Socket::At(path)), _) => Server::Unix(path.clone()),
            (_, Some(Reach::At(address))) if address.unspecified() => {
                anyhow::bail!(WrongOptions(
                    "--xds-address is one to listen on: name the one to connect to, as 127.0.0.1:18000"
                ))
            }
            (_, Some(Reach::At(address))) => Server::Tcp(address.clone(), self.tls.options()?),
            (None, Some(Reach::Off) | None) => Server::Unix(DEFAULT_SOCKET.into()),
            (Some(Socket::Off), Some(Reach::Off) | None) => {
                anyhow::bail!(WrongOptions(
                    "--xds-socket is off: name the server with --xds-address HOST:PORT"
                ))
            }
        };
        if matches!(server, Server::Unix(_)) && self.tls.options()?.is_some() {
            anyhow::bail!(WrongOptions(
                "--xds-client-cert is for TCP, and the Unix socket is preferred: name the server with --xds-address, and no --xds-socket"
            ));
        }
        Ok(envoy::Bootstrap {
            node: Some(node(&self.node)),
            admin: self.admin.admin()?,
            static_resources: Some(StaticResources {
                clusters: vec![server::cluster(&server, &self.node)?],
                ..StaticResources::default()
            }),
            dynamic_resources: Some(DynamicResources {
                ads_config: Some(server::ads(self.protocol)),
                cds_config: Some(server::over_ads()),
                lds_config: Some(server::over_ads()),
                ..DynamicResources::default()
            }),
            deferred_stat_options: Some(DeferredStatOptions {
                enable_deferred_creation_stats: true,
            }),
            ..envoy::Bootstrap::default()
        })
    }
}

impl AdminSocket {
    /// The admin interface; `None` where it is off.
    pub(super) fn admin(&self) -> Result<Option<Admin>> {
        let Socket::At(path) = &self.admin_socket else { return Ok(None) };
        // Its owner alone: whoever reaches it can drain the proxy.
        let pipe = core::Pipe { path: utf8(path)?, mode: 0o600 };
        let address = core::Address { address: Some(address::Address::Pipe(pipe)) };
        Ok(Some(Admin { address: Some(address), ..Admin::default() }))
    }
}

/// A socket that another process makes, wherever that one runs. Envoy takes a path with an `@` in
/// front for one that is no file.
fn elsewhere(text: &str) -> Result<Socket, String> {
    match text.parse()? {
        Socket::At(path) if path.is_relative() && !text.starts_with('@') => Err(format!(
            "a relative path, and Envoy runs in a folder of its own: write it from / on, as /run/{text}"
        )),
        socket => Ok(socket),
    }
}

/// How Envoy introduces itself.
pub(super) fn node(id: &NodeId) -> Node {
    Node { id: id.to_string(), cluster: "aether".to_owned(), ..Node::default() }
}

/// A path as a message holds it.
fn utf8(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path of a socket must be UTF-8")?;
    Ok(text.to_owned())
}
