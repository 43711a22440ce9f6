//! A node and its pods, cut off from the world.
//!
//! Every address is a host route through the node, as with most network plugins: a pod has nothing but a default route.
//! So a ClusterIP has a route, which it needs to be redirected, and leads nowhere when it is not: the node refuses
//! the connection, as kube-proxy does for a Service without endpoints.

mod netns;
mod pod;
mod redirect;

pub use netns::{Netns, sweep, unmount_below};
pub use pod::Pod;
pub use redirect::{CAPTURE_PORT, DNS_PORT, Escape, MESH_PORT, Mode, Redirect};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// The node's IPv4 address, the gateway of every pod. `aether serve` may listen on it.
pub const NODE_V4: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
/// The node's IPv6 address, the gateway of every pod.
pub const NODE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 1);

/// A node: a network namespace with a bridge. Two of them know nothing of each other, so tests may all use the same
/// addresses and ports.
#[derive(Debug)]
pub struct Net {
    node: Netns,
    pods: AtomicU16,
}

impl Net {
    /// A node without pods. Needs root.
    pub fn new() -> Result<Self> {
        let node = Netns::new()?;
        node.sysctl(&["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])?;
        // With an address of its own: a bridge takes the lowest of its ports', so that a new pod could make the others
        // talk to an address that is not the node's any more, until they ask again half a minute later.
        node.ip(&format!(
            "link add br0 address 02:00:0a:f4:00:01 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set br0 up\n\
             addr add {NODE_V4}/32 dev br0\n\
             addr add {NODE_V6}/128 dev br0 nodad\n\
             link add nowhere type bridge stp_state 0\n\
             link set nowhere up\n\
             route add 0.0.0.0/0 dev nowhere\n\
             route add ::/0 dev nowhere\n"
        ))?;
        // By a reset and not as unreachable: a kernel limits those answers to one a second, and heeds one that comes
        // while connect() still runs only at the next SYN, a second later.
        for restore in ["iptables-restore", "ip6tables-restore"] {
            let rule =
                "*filter\n-A FORWARD -o nowhere -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n";
            netns::feed(&mut node.command(restore), rule)?;
        }
        Ok(Self { node, pods: AtomicU16::new(0) })
    }

    /// The node's own network namespace, where node agents run.
    pub fn node(&self) -> &Netns {
        &self.node
    }

    /// A pod with the next free IPv4 address of 10.244.1.0/24 to 10.244.254.0/24, and an IPv6 address.
    pub fn pod(&self) -> Result<Pod> {
        let n = self.pods.fetch_add(1, Ordering::Relaxed);
        if n > 60_000 {
            bail!("a node of the rig has at most 60,000 pods");
        }
        let (third, fourth) = (n / 250 + 1, n % 250 + 2);
        let v4 = Ipv4Addr::new(10, 244, u8::try_from(third)?, u8::try_from(fourth)?);
        let v6 = Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, third, fourth);
        self.pod_at(&[v4.into(), v6.into()])
    }

    /// A pod with these addresses. A stranger is a pod as well, with an address outside of the cluster's.
    pub fn pod_at(&self, addresses: &[IpAddr]) -> Result<Pod> {
        let pod = Pod::new()?;
        self.node.ip(&format!(
            "link add {veth} type veth peer name eth0 netns {pod}\n\
             link set {veth} master br0 up\n",
            veth = pod.veth(),
            pod = pod.netns().name(),
        ))?;
        pod.netns().ip("link set eth0 up\n")?;
        let mut pod = pod;
        for address in addresses {
            self.add_address(&mut pod, *address)?;
        }
        Ok(pod)
    }

    /// Gives a pod one more address, reachable by all pods of this node.
    pub fn add_address(&self, pod: &mut Pod, address: IpAddr) -> Result<()> {
        let (width, flags, gateway): (u8, &str, IpAddr) = match address {
            IpAddr::V4(_) => (32, "", NODE_V4.into()),
            IpAddr::V6(_) => (128, "nodad", NODE_V6.into()),
        };
        self.node.ip(&format!("route replace {address}/{width} dev br0\n"))?;
        pod.netns().ip(&format!(
            "addr add {address}/{width} dev eth0 {flags}\n\
             route replace default via {gateway} dev eth0 onlink\n"
        ))?;
        pod.own(address);
        Ok(())
    }
}
