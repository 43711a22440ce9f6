//! Ports on loopback that nobody listens on.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};

/// Some addresses, each with a port of its own. The system does not give a port again at once, so that they are still
/// free when a server that is started next asks for them.
pub fn free<const N: usize>() -> Result<[SocketAddr; N]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on loopback");
    let all: Vec<TcpListener> = (0..N).map(|_| bind()).collect::<Result<_>>()?;
    let addresses: Vec<SocketAddr> =
        all.iter().map(TcpListener::local_addr).collect::<std::io::Result<_>>()?;
    addresses.try_into().ok().context("as many addresses as were asked for")
}
