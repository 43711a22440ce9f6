//! What these tests play on: TCP services of every shape, and someone in the mesh who calls them.

use std::net::SocketAddr;

use anyhow::Result;
use it::backend::{self, Backend, Http1Backend};
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::sidecar::Sidecar;
use it::world::{Object, served};

/// ClusterIPs: one port, IPv4 and IPv6.
pub const ONE: &str = "10.96.3.1";
pub const ONE_V6: &str = "fd00:10:96::3:1";
/// Several ports.
pub const MANY: &str = "10.96.3.2";
/// HTTP and TCP.
pub const MIXED: &str = "10.96.3.3";
/// An address of IPv6 alone, served over IPv6.
pub const SIX: &str = "fd00:10:96::3:4";
/// The size of the large transfers, in bytes.
pub const LARGE: u64 = 200 << 20;

/// Everything that runs. Dropped, all of it ends.
pub struct Stage {
    pub mesh: Mesh,
    pub echo: Backend,
    pub sink: Backend,
    pub web: Http1Backend,
    pub server: Pod,
    _backends: Vec<Backend>,
}

impl Stage {
    pub async fn set(mode: Mode) -> Result<Self> {
        let net = Net::new()?;
        let server = net.pod()?;
        let (netns, at) = (server.netns(), |port| server.at(port));
        let echo = backend::echo(netns, at(7000)?).await?;
        let sink = backend::sink(netns, at(7002)?).await?;
        let backends = vec![
            backend::greeter(netns, at(7001)?, "hello\n").await?,
            backend::source(netns, at(7003)?, LARGE).await?,
            backend::closer(netns, at(7004)?).await?,
            backend::echo(netns, SocketAddr::new(server.v6()?, 7000)).await?,
        ];
        let web = Http1Backend::named(netns, at(8080)?, "web").await?;
        let mut objects: Vec<Object> = Vec::new();
        let v4 = server.v4()?;
        objects.extend(served("shop/one", &[ONE, ONE_V6], &[(7, "echo", 7000)], v4)?);
        let many = [
            (7, "echo", 7000),
            // Listed as server-first, and not.
            (3306, "mysql", 7001),
            (3307, "mysql", 7001),
            (9002, "sink", 7002),
            (9003, "source", 7003),
            (9004, "closer", 7004),
            // Nobody listens.
            (9005, "nothing", 7005),
        ];
        objects.extend(served("shop/many", &[MANY], &many, v4)?);
        let mixed = [(80, "http", 8080), (9000, "raw", 7000), (3306, "mysql", 7001)];
        objects.extend(served("shop/mixed", &[MIXED], &mixed, v4)?);
        objects.extend(served("shop/six", &[SIX], &[(7, "echo", 7000)], server.v6()?)?);
        let mut plan = Plan::new(&["shop"], objects, Redirect::new(mode));
        if mode == Mode::Scoped {
            plan.serve = &["--capture-mode", "scoped"];
        }
        let mesh = Mesh::start(net, plan).await?;
        Ok(Self { mesh, echo, sink, web, server, _backends: backends })
    }

    pub fn caller(&self) -> &Sidecar {
        &self.mesh.callers[0]
    }
}

/// An address and a port of it.
pub fn at(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), port)
}
