//! A pod: a network namespace with addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use super::{Netns, Redirect};

/// A pod of a [`super::Net`]. Clients and backends run in it through [`Netns::run`].
#[derive(Debug)]
pub struct Pod {
    netns: Netns,
    veth: String,
    addresses: Vec<IpAddr>,
}

impl Pod {
    /// A namespace with loopback alone; [`super::Net`] attaches it.
    pub(super) fn new() -> Result<Self> {
        static VETHS: AtomicU32 = AtomicU32::new(0);
        let veth = format!("v{}", VETHS.fetch_add(1, Ordering::Relaxed));
        Ok(Self { netns: Netns::new()?, veth, addresses: Vec::new() })
    }

    /// Its network namespace.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// The name of the node's end of its link.
    pub(super) fn veth(&self) -> &str {
        &self.veth
    }

    /// Remembers an address that it was given.
    pub(super) fn own(&mut self, address: IpAddr) {
        self.addresses.push(address);
    }

    /// Its addresses, in the order in which it got them.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Its first IPv4 address.
    pub fn v4(&self) -> Result<IpAddr> {
        self.addresses
            .iter()
            .find(|ip| ip.is_ipv4())
            .copied()
            .context("this pod has no IPv4 address")
    }

    /// Its first IPv6 address.
    pub fn v6(&self) -> Result<IpAddr> {
        self.addresses
            .iter()
            .find(|ip| ip.is_ipv6())
            .copied()
            .context("this pod has no IPv6 address")
    }

    /// A port on its first IPv4 address.
    pub fn at(&self, port: u16) -> Result<SocketAddr> {
        Ok(SocketAddr::new(self.v4()?, port))
    }

    /// Puts these redirection rules in place of those there are.
    pub fn redirect(&self, redirect: &Redirect) -> Result<()> {
        redirect.apply(&self.netns)
    }

    /// Runs a future in the pod. See [`Netns::run`].
    pub async fn run<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.netns.run(future).await
    }
}
