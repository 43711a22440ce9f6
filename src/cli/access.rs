//! Options that say who may connect to the xDS server, and how much of it one may take.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use spiffe::TrustDomain;

use super::values::{Span, duration, switch};
use super::{WrongOptions, WrongSettings};
use crate::tls::{self, Files, MutualFiles};
use crate::vouch::NodeProxyId;
use crate::xds::Limits;

/// Who may connect.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which proxies may connect")]
#[expect(clippy::struct_field_names, reason = "the fields are named as the options are")]
pub struct Access {
    /// Certificate that the TCP address presents, PEM. With it, each proxy has to present the
    /// identity of its pod: a certificate whose SPIFFE ID is
    /// `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. It is read again when it changes.
    #[arg(long, env = "AETHER_XDS_TLS_CERT", value_name = "FILE")]
    xds_tls_cert: Option<PathBuf>,

    /// Its private key, PEM.
    #[arg(long, env = "AETHER_XDS_TLS_KEY", value_name = "FILE")]
    xds_tls_key: Option<PathBuf>,

    /// Authorities whose certificates proxies may present, PEM.
    #[arg(long, env = "AETHER_XDS_CLIENT_CA", value_name = "FILE")]
    xds_client_ca: Option<PathBuf>,

    /// Trust domain of proxies [default: that of our own certificate; any, where that has no SPIFFE
    /// ID].
    #[arg(long, env = "AETHER_XDS_TRUST_DOMAIN", value_name = "NAME", value_parser = trust_domain)]
    xds_trust_domain: Option<String>,

    /// SPIFFE IDs that node proxies may have, separated by commas; {node} in one stands for the
    /// node's name. Without any, none is served over TLS.
    #[arg(long, env = "AETHER_XDS_NODE_PROXY_ID", value_name = "IDS", value_delimiter = ',')]
    xds_node_proxy_id: Vec<NodeProxyId>,

    /// Serve plain TCP on an address that is not this machine's own: whoever reaches it gets the
    /// configuration of every proxy.
    #[arg(long, env = "AETHER_XDS_INSECURE", value_parser = switch)]
    xds_insecure: bool,

    /// Mode of the Unix socket's file, octal: who may write to it may connect.
    #[arg(
        long,
        env = "AETHER_XDS_SOCKET_MODE",
        value_name = "MODE",
        default_value = "0666",
        value_parser = mode
    )]
    xds_socket_mode: u32,

    /// Connections at a time, in all.
    #[arg(
        long,
        env = "AETHER_XDS_MAX_CONNECTIONS",
        value_name = "NUMBER",
        default_value = "20000",
        value_parser = number
    )]
    xds_max_connections: usize,

    /// Connections of one address at a time. This machine's own addresses are not counted.
    #[arg(
        long,
        env = "AETHER_XDS_MAX_PEER_CONNECTIONS",
        value_name = "NUMBER",
        default_value = "1024",
        value_parser = number
    )]
    xds_max_peer_connections: usize,

    /// Streams of one address at a time. This machine's own addresses are not counted.
    #[arg(
        long,
        env = "AETHER_XDS_MAX_PEER_STREAMS",
        value_name = "NUMBER",
        default_value = "4096",
        value_parser = number
    )]
    xds_max_peer_streams: usize,

    /// How long a connection and its streams go on, a tenth more or less, before the proxy has to
    /// connect anew; 0: for ever. None outlives the certificate that it presented.
    #[arg(
        long,
        env = "AETHER_XDS_MAX_STREAM_AGE",
        value_name = "SPAN",
        default_value = "1h",
        value_parser = age
    )]
    xds_max_stream_age: Duration,

    /// Over how long the streams end once we are told to stop, each at any moment of it.
    #[arg(
        long,
        env = "AETHER_XDS_DRAIN",
        value_name = "SPAN",
        default_value = "3s",
        value_parser = duration
    )]
    xds_drain: Duration,
}

/// What was asked for, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The files of TLS; `None`: plain text.
    pub tls: Option<MutualFiles>,
    /// The trust domain of proxies, where it was named.
    pub trust_domain: Option<String>,
    /// Who node proxies may be.
    pub node_proxies: Vec<NodeProxyId>,
    /// The mode of the Unix socket.
    pub socket_mode: u32,
    /// What peers may take.
    pub limits: Limits,
    /// Over how long streams end.
    pub drain: Duration,
}

impl Access {
    /// The options, checked together, for this TCP address.
    ///
    /// # Errors
    /// Where they do not go together.
    pub fn options(&self, address: Option<SocketAddr>) -> Result<Options> {
        let tls = match (&self.xds_tls_cert, &self.xds_tls_key, &self.xds_client_ca) {
            (Some(certificate), Some(key), Some(authorities)) => Some(MutualFiles {
                pair: Files {
                    options: tls::Options { certificate: "--xds-tls-cert", key: "--xds-tls-key" },
                    certificate: certificate.clone(),
                    key: key.clone(),
                },
                option: "--xds-client-ca",
                authorities: authorities.clone(),
            }),
            (None, None, None) => None,
            _ => bail!(WrongOptions(
                "--xds-tls-cert, --xds-tls-key and --xds-client-ca go together: give all three, or none for plain TCP"
            )),
        };
        match (&tls, address) {
            (Some(_), None) => bail!(WrongOptions(
                "--xds-tls-cert is for TCP, and --xds-address is none: name an address, or leave the certificate out"
            )),
            (Some(_), _) if self.xds_insecure => bail!(WrongOptions(
                "--xds-insecure is plain TCP, and --xds-tls-cert is TLS: leave one of them out"
            )),
            (None, Some(address))
                if !address.ip().to_canonical().is_loopback() && !self.xds_insecure =>
            {
                bail!(WrongSettings(format!(
                    "--xds-address {address} is no address of this machine alone, and in plain TCP whoever reaches it gets the configuration of every proxy: give --xds-tls-cert, --xds-tls-key and --xds-client-ca, or listen on 127.0.0.1, or say --xds-insecure"
                )));
            }
            _ => {}
        }
        if tls.is_none() && (self.xds_trust_domain.is_some() || !self.xds_node_proxy_id.is_empty())
        {
            bail!(WrongOptions(
                "--xds-trust-domain and --xds-node-proxy-id are for TLS: give --xds-tls-cert, --xds-tls-key and --xds-client-ca too"
            ));
        }
        let age = self.xds_max_stream_age;
        let limits = Limits {
            connections: self.xds_max_connections,
            peer_connections: self.xds_max_peer_connections,
            peer_streams: self.xds_max_peer_streams,
            age: (!age.is_zero()).then_some(age),
            ..Limits::default()
        };
        Ok(Options {
            tls,
            trust_domain: self.xds_trust_domain.clone(),
            node_proxies: self.xds_node_proxy_id.clone(),
            socket_mode: self.xds_socket_mode,
            limits,
            drain: self.xds_drain,
        })
    }
}

fn trust_domain(text: &str) -> Result<String, String> {
    let domain = TrustDomain::new(text);
    domain.map(|domain| domain.to_string()).map_err(|error| {
        format!("no trust domain: {error}; write it as in cluster.example, without spiffe://")
    })
}

/// Takes a mode that lets somebody connect.
fn mode(text: &str) -> Result<u32, String> {
    let form = || format!("{text:?} is no mode: write it octal, as in 0660");
    let octal = text.strip_prefix("0o").unwrap_or(text);
    let mode = u32::from_str_radix(octal, 8).map_err(|_| form())?;
    if mode > 0o777 {
        return Err(form());
    }
    if mode & 0o222 == 0 {
        return Err(format!("with {text} nobody may connect, which is to write: 0660, as it were"));
    }
    Ok(mode)
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("write a number of 1 or more".to_owned()),
    }
}

fn age(text: &str) -> Result<Duration, String> {
    let Span(age) = text.parse()?;
    if !age.is_zero() && age < Duration::from_secs(1) {
        return Err(
            "proxies would do nothing but connect: write 1s or more, or 0 for ever".to_owned()
        );
    }
    Ok(age)
}

#[cfg(test)]
mod tests;
