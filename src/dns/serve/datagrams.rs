//! A UDP socket whose answers leave from the address that was asked.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};

use super::sockets;

/// How long a read waits before it looks around.
const WAIT: Duration = Duration::from_millis(100);

/// Where a query came from, and to which of our addresses.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client.
    pub address: SocketAddr,
    /// The address that it asked, on a socket that is bound to all of them.
    asked: Option<Asked>,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

/// The socket.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    /// Bound to all addresses: a client takes an answer only from the one that it asked.
    of_all: bool,
}

impl Datagrams {
    /// Binds an address, which others may be bound to as well.
    ///
    /// # Errors
    /// Where it cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = sockets::udp(address)?;
        socket.set_read_timeout(Some(WAIT))?;
        socket.set_write_timeout(Some(WAIT))?;
        let of_all = address.ip().is_unspecified();
        if of_all && address.is_ipv4() {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        } else if of_all {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        Ok(Self { socket, of_all })
    }

    /// Takes no new datagram from now on.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn retire(&self) -> io::Result<()> {
        sockets::retire(&self.socket)
    }

    /// The next datagram; an error of kind `WouldBlock` where none comes for a while.
    ///
    /// # Errors
    /// Where none comes, or the system reports that an answer could not be delivered.
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<(usize, Peer)> {
        if !self.of_all {
            let (length, address) = self.socket.recv_from(packet)?;
            return Ok((length, Peer { address, asked: None }));
        }
        let mut space = nix::cmsg_space!(libc::in6_pktinfo);
        let mut parts = [IoSliceMut::new(packet)];
        let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        let received = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut space), flags)?;
        let address = received.address.as_ref().and_then(to_std);
        let address = address.ok_or(io::ErrorKind::InvalidData)?;
        let asked = received.cmsgs()?.find_map(|message| match message {
            // The interface is left to the routes: it may be another one on the way back.
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(Asked::V4(libc::in_pktinfo { ipi_ifindex: 0, ..info }))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                // A link-local address means nothing without it.
                let local = info.ipi6_addr.s6_addr.starts_with(&[0xfe, 0x80]);
                let ipi6_ifindex = if local { info.ipi6_ifindex } else { 0 };
                Some(Asked::V6(libc::in6_pktinfo { ipi6_ifindex, ..info }))
            }
            _ => None,
        });
        Ok((received.bytes, Peer { address, asked }))
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn send(&self, answer: &[u8], to: &Peer) -> io::Result<()> {
        let Some(asked) = &to.asked else {
            return self.socket.send_to(answer, to.address).map(drop);
        };
        let message = match asked {
            Asked::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Asked::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        };
        let (fd, parts) = (self.socket.as_raw_fd(), [IoSlice::new(answer)]);
        let address = SockaddrStorage::from(to.address);
        sendmsg(fd, &parts, &[message], MsgFlags::empty(), Some(&address))?;
        Ok(())
    }
}

fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}
