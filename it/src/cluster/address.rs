//! Addresses that are ours alone, so that whoever is restarted finds its port free.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

/// A loopback address of 127.64.0.0/10 with one port, on which no other rig of this machine listens.
///
/// A port that the kernel chose is free only while it is bound: a server that is down would lose it to the next
/// connection. So a server gets an address of its own and a port that no connection leaves from. The claim is a UDP
/// socket on the same port, which the kernel drops with us.
#[derive(Debug)]
pub struct Claim {
    address: SocketAddr,
    _socket: UdpSocket,
}

impl Claim {
    /// A new one with this port, which should lie below those that the kernel gives to connections (32768).
    pub fn new(port: u16) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..1000 {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            // Rigs that start together begin in different places.
            let n = std::process::id().wrapping_mul(61).wrapping_add(n) & 0x003f_ffff;
            let ip = Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 0).to_bits() | n);
            let address = SocketAddr::new(IpAddr::V4(ip), port);
            if let Ok(socket) = UdpSocket::bind(address) {
                return Ok(Self { address, _socket: socket });
            }
        }
        bail!("no loopback address is free on port {port}")
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
