//! What the tests play on: a caller with a proxy, one without, and the servers that both call.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::net::{Mode, Net, Pod, Redirect};
use it::world::{Object, World};

/// How long anything may take to come up.
pub const SOON: Duration = Duration::from_secs(20);
/// The ports of every target, the same with and without capture: HTTP/1.1, HTTP/2, gRPC and WebSocket.
pub const HTTP1: u16 = 80;
pub const HTTP2: u16 = 82;
pub const GRPC: u16 = 50051;
pub const WS: u16 = 83;

/// Somebody to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// What it shows.
    pub name: &'static str,
    /// The names that it is called by, all of which reach it with any of its ports.
    pub hosts: &'static [&'static str],
    /// Where a captured caller connects.
    captured: [u8; 4],
    /// Where one without capture connects.
    direct: [u8; 4],
}

const SERVER: [u8; 4] = [10, 244, 9, 1];
const ELSEWHERE: [u8; 4] = [198, 51, 100, 7];

/// A service whose ports declare what they speak.
pub const DECLARED: Target = Target {
    name: "a service that declares its protocols",
    hosts: &["said.shop.svc.cluster.local", "said", "SAID.shop.aether.internal.", "10.96.0.1"],
    captured: [10, 96, 0, 1],
    direct: SERVER,
};
/// One whose ports declare nothing, with the same servers.
pub const SILENT: Target = Target {
    name: "a service that declares none",
    hosts: &["silent.shop", "silent.shop.svc", "silent.aether.internal"],
    captured: [10, 96, 0, 2],
    direct: SERVER,
};
/// Somebody whom the mesh does not know, with servers of its own.
pub const STRANGER: Target = Target {
    name: "a stranger",
    hosts: &["stranger.example", "198.51.100.7", "said.shop.example", "under_score.example."],
    captured: ELSEWHERE,
    direct: ELSEWHERE,
};
/// All of them.
pub const TARGETS: [Target; 3] = [DECLARED, SILENT, STRANGER];

impl Target {
    /// Where a caller connects to reach a port of it.
    pub fn at(&self, caller: Caller, port: u16) -> SocketAddr {
        let ip = match caller {
            Caller::Captured => self.captured,
            Caller::Free => self.direct,
        };
        SocketAddr::new(IpAddr::from(ip), port)
    }

    /// Where its server listens.
    pub fn server(&self, port: u16) -> SocketAddr {
        self.at(Caller::Free, port)
    }
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A pod whose traffic goes through its Envoy.
    Captured,
    /// A pod without any proxy.
    Free,
}

/// Everything that runs. Dropped, all of it ends.
pub struct Stage {
    envoy: Envoy,
    captured: Pod,
    free: Pod,
    server: Pod,
    stranger: Pod,
    _aether: Aether,
    _world: World,
    _net: Net,
}

impl Stage {
    /// Sets it up. The backends are the test's own.
    pub async fn set() -> Result<Self> {
        let net = Net::new()?;
        let (captured, free) = (net.pod()?, net.pod()?);
        let (server, stranger) = (net.pod_at(&[SERVER.into()])?, net.pod_at(&[ELSEWHERE.into()])?);
        let world = World::new()?;
        let service = |name, ip, [http, h2, grpc, ws]: [&str; 4]| {
            Object::service("shop", name, ip)
                .port("http", HTTP1, http)
                .port("h2", HTTP2, h2)
                .port("grpc", GRPC, grpc)
                .port("ws", WS, ws)
        };
        let slice = |name| {
            Object::slice("shop", name, "1", false)
                .target("http", HTTP1)
                .target("h2", HTTP2)
                .target("grpc", GRPC)
                .target("ws", WS)
                .endpoint(SERVER.into())
        };
        let declared = ["http", "kubernetes.io/h2c", "grpc", "kubernetes.io/ws"];
        world.put(
            "world",
            &[
                Object::namespace("shop"),
                Object::node("node-1", "north", "north-1"),
                Object::pod("shop", "caller", "node-1", captured.addresses()),
                service("said", "10.96.0.1", declared),
                slice("said"),
                service("silent", "10.96.0.2", [""; 4]),
                slice("silent"),
            ],
        )?;
        let mut aether = Aether::start(&net, world.path(), &[])?;
        aether.serving(SOON).await?;
        captured.redirect(&Redirect::new(Mode::All))?;
        let bootstrap = aether.bootstrap("pod/shop/caller", Over::Socket, &[])?;
        let mut envoy = Envoy::start(&captured, &bootstrap)?;
        envoy.ready(SOON).await?;
        let (_aether, _world, _net) = (aether, world, net);
        Ok(Self { envoy, captured, free, server, stranger, _aether, _world, _net })
    }

    /// The pod of a caller.
    pub fn pod(&self, caller: Caller) -> &Pod {
        match caller {
            Caller::Captured => &self.captured,
            Caller::Free => &self.free,
        }
    }

    /// The pod in which a target's servers run.
    pub fn servers(&self, target: &Target) -> &Pod {
        if *target == STRANGER { &self.stranger } else { &self.server }
    }

    /// Fails unless this many requests to each target passed the captured caller's Envoy: else nothing was compared.
    pub async fn went_through_the_proxy(&self, least: u64) -> Result<()> {
        let clusters = ["http_said.shop.*", "http_silent.shop.*", "passthrough_original_dst"];
        for cluster in clusters {
            let counters =
                self.envoy.stats(&format!("^cluster.{cluster}.upstream_rq_total$")).await?;
            let passed: u64 = counters.values().sum();
            anyhow::ensure!(passed >= least, "{passed} of {least} requests: {counters:?}");
        }
        Ok(())
    }
}
