//! Sockets that a predecessor and a successor can share.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// How much may wait to be read on a UDP socket, in bytes, where the system grants it: some
/// milliseconds of a flood.
const RECEIVE_BUFFER: usize = 4 << 20;
/// How many connections may wait to be taken.
const BACKLOG: i32 = 1024;

/// A UDP socket. Any number may be bound to an address: each client is served by one of them.
///
/// # Errors
/// Where the address cannot be bound.
pub fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    prepare(&socket, address)?;
    // Best effort: the system's own limit may be lower.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A TCP listener of the same kind.
///
/// # Errors
/// Where the address cannot be bound.
pub fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    prepare(&socket, address)?;
    // Connections of a process before may still be winding up.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn prepare(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        // So that 0.0.0.0 and [::] can both be asked for.
        socket.set_only_v6(true)?;
    }
    Ok(())
}

/// Makes a UDP socket take no new datagram, while those that have come can still be read and
/// answered: it is connected to an address that nothing comes from. The kernel then passes it
/// over when it chooses among the sockets of its address, so that a successor gets everything.
///
/// # Errors
/// Where the system refuses.
pub fn retire(socket: &UdpSocket) -> io::Result<()> {
    // From the discard port of our own address nobody asks for names.
    let mut nobody = socket.local_addr()?;
    if nobody.ip().is_unspecified() {
        nobody.set_ip(match nobody {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    nobody.set_port(9);
    socket.connect(nobody)
}
