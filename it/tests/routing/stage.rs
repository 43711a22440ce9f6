//! What these tests play on: two namespaces with Services of one bare name, a caller in each, and something that
//! answers at the addresses to which the mesh must let nothing through.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use it::aether::Over;
use it::backend::{Http1Backend, Reply};
use it::mesh::{Mesh, Plan};
use it::net::{Mode, Net, Pod, Redirect};
use it::sidecar::Sidecar;
use it::world::{Object, ServedPort, served};

/// ClusterIPs.
pub const WEB: &str = "10.96.1.10";
pub const WEB_V6: &str = "fd00:10:96::1:10";
pub const MIXED: &str = "10.96.1.12";
pub const PAY_WEB: &str = "10.96.2.10";
/// Who is no part of the mesh.
pub const STRANGER: &str = "198.51.100.7";
/// The pod of the headless Service.
pub const PEER: &str = "10.244.9.2";
const BACKENDS: &str = "10.244.9.1";

/// A key, its ClusterIPs, its ports.
type Served = (&'static str, &'static [&'static str], &'static [ServedPort<'static>]);

/// The backend of a port answers with `<key>:<port>`.
const SERVED: [Served; 7] = [
    ("shop/web", &[WEB, WEB_V6], &[(80, "http", 8080), (8081, "http", 8081)]),
    // No port 80: the first one is the default.
    ("shop/api", &["10.96.1.11"], &[(7000, "http", 8082), (7001, "", 8083)]),
    ("shop/mixed", &[MIXED], &[(80, "http", 8084), (9000, "tcp", 8085)]),
    // Another name in the mesh.
    ("shop/old", &["10.96.1.13"], &[(80, "http", 8086)]),
    // A port 18081 of its own, which is then the default.
    ("shop/meshy", &["10.96.1.14"], &[(7000, "http", 8087), (18081, "http", 8088)]),
    // Younger than shop's, which therefore has the short name.
    ("pay/web", &[PAY_WEB], &[(80, "http", 8089)]),
    ("pay/only", &["10.96.2.11"], &[(80, "http", 8090)]),
];

/// How the Envoys ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Delta,
    Sotw,
}

/// Everything that runs. Dropped, all of it ends.
pub struct Stage {
    /// The backend of shop/web's port 80: `/fails` gets its own 503.
    pub web: Http1Backend,
    pub stranger: Http1Backend,
    leaks: Vec<Http1Backend>,
    _backends: Vec<Http1Backend>,
    // Callers before the pods that they call.
    mesh: Mesh,
    _pods: Vec<Pod>,
}

impl Stage {
    /// Sets it up in this mode, with Envoys that ask this way.
    pub async fn set(mode: Mode, stream: Stream) -> Result<Self> {
        let net = Net::new()?;
        let servers = net.pod_at(&[BACKENDS.parse()?])?;
        let web = Http1Backend::start(servers.netns(), servers.at(8080)?, |request| {
            if !request.head.start_line().contains(" /fails ") {
                return Reply::ok("shop/web:80");
            }
            Reply::raw("HTTP/1.1 503 Not Today\r\nx-own: yes\r\ncontent-length: 4\r\n\r\nmine")
        });
        let web = web.await?;
        let mut backends = Vec::new();
        let ports =
            SERVED.iter().flat_map(|(key, _, ports)| ports.iter().map(move |port| (key, port)));
        for (key, (port, _, at)) in ports.filter(|(_, (_, _, at))| *at != 8080) {
            let name = format!("{key}:{port}");
            backends.push(Http1Backend::named(servers.netns(), servers.at(*at)?, &name).await?);
        }
        let mut pods = vec![servers];
        // Where a request would go that the mesh let through to a ClusterIP.
        let mut leaks = Vec::new();
        let original = net.pod_at(&[WEB.parse()?, WEB_V6.parse()?, MIXED.parse()?])?;
        for ip in original.addresses() {
            for port in [80, 9999, 18081] {
                let at = SocketAddr::new(*ip, port);
                leaks.push(Http1Backend::named(original.netns(), at, "leaked").await?);
            }
        }
        let peer = net.pod_at(&[PEER.parse()?])?;
        for (port, words) in [(8080, "peer"), (8099, "peer's own port")] {
            backends.push(Http1Backend::named(peer.netns(), peer.at(port)?, words).await?);
        }
        let outside = net.pod_at(&[STRANGER.parse()?])?;
        let stranger = Http1Backend::named(outside.netns(), outside.at(80)?, "stranger").await?;
        pods.extend([original, peer, outside]);

        let mut plan = Plan::new(&["shop", "pay"], objects()?, Redirect::new(mode));
        if mode == Mode::Scoped {
            plan.serve = &["--capture-mode", "scoped"];
        }
        if stream == Stream::Sotw {
            (plan.over, plan.bootstrap) = (Over::Tcp, &["--protocol", "sotw"]);
        }
        let mesh = Mesh::start(net, plan).await?;
        Ok(Self { web, stranger, leaks, _backends: backends, mesh, _pods: pods })
    }

    /// The caller in shop.
    pub fn shop(&self) -> &Sidecar {
        &self.mesh.callers[0]
    }

    /// The caller in pay.
    pub fn pay(&self) -> &Sidecar {
        &self.mesh.callers[1]
    }

    /// That nothing came to the addresses to which nothing may leak.
    pub fn nothing_leaked(&self) -> Result<()> {
        for backend in &self.leaks {
            let (address, count) = (backend.address(), backend.counts().connections());
            ensure!(count == 0, "{count} connections reached {address}");
        }
        Ok(())
    }
}

fn objects() -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for (key, ips, ports) in SERVED {
        let [service, slice] = served(key, ips, ports, BACKENDS.parse()?)?;
        objects.push(match key {
            "shop/old" => service.annotation("aether.io/service", "fresh"),
            "pay/web" => service.with(&["metadata", "creationTimestamp"], "2026-02-01T00:00:00Z"),
            _ => service,
        });
        objects.push(slice);
    }
    objects.extend(served("shop/peers", &["None"], &[(80, "http", 8080)], PEER.parse()?)?);
    Ok(objects)
}

/// Has a caller GET `/` from this address under each of these hosts, and holds each answer against the backend's name.
pub async fn reach(caller: &Sidecar, to: &str, hosts: &[&str], backend: &str) -> Result<()> {
    for host in hosts {
        let answer = caller.get(to.parse()?, host).await?;
        let got = (answer.status()?, answer.text());
        ensure!(
            got == (200, backend.to_owned()),
            "{caller} asked {to} for {host:?} and got {got:?}, not {backend:?}"
        );
    }
    Ok(())
}

/// Has a caller GET `/` under each of these hosts, and holds that the mesh answers 404, with the host and these words.
pub async fn refuse(caller: &Sidecar, to: &str, hosts: &[&str], words: &[&str]) -> Result<()> {
    for host in hosts {
        let answer = caller.get(to.parse()?, host).await?;
        let (status, text) = (answer.status()?, answer.text());
        ensure!(
            status == 404,
            "{caller} asked {to} for {host:?} and got {status} {text:?}, not 404"
        );
        for word in words.iter().chain([host]) {
            ensure!(
                text.contains(word),
                "{caller} asked {to} for {host:?}: {text:?} lacks {word:?}"
            );
        }
    }
    Ok(())
}
