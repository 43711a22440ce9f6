//! The twenty services: HTTP, TCP and both at once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;

use super::NAMESPACE;
use crate::backend::{self, Backend, H2Backend, Http1Backend};
use crate::load::Work;
use crate::net::Pod;
use crate::world::Object;

/// The port of HTTP.
const WEB: u16 = 80;
/// The port of the echo.
const RAW: u16 = 9000;

/// What a service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Http,
    H2c,
    Tcp,
    Mixed,
}

const SHAPES: [(Shape, u8); 4] =
    [(Shape::Http, 8), (Shape::H2c, 2), (Shape::Tcp, 6), (Shape::Mixed, 4)];

/// A service: `svc-<n>` on 10.96.1.<n>.
#[derive(Debug, Clone, Copy)]
struct Service {
    n: u8,
    shape: Shape,
}

/// All of them, with their backends.
#[derive(Debug)]
pub(super) struct Services {
    all: Vec<Service>,
    _http: Vec<Http1Backend>,
    _h2: Vec<H2Backend>,
    _tcp: Vec<Backend>,
}

impl Services {
    /// Starts the backends in this pod, each on a port of its own.
    pub(super) async fn start(pod: &Pod) -> Result<Self> {
        let shapes = SHAPES.iter().flat_map(|(shape, times)| (0..*times).map(move |_| *shape));
        let all: Vec<Service> = (1..).zip(shapes).map(|(n, shape)| Service { n, shape }).collect();
        let (mut http, mut h2, mut tcp) = (Vec::new(), Vec::new(), Vec::new());
        for service in &all {
            let (web, raw) = (pod.at(service.target(WEB))?, pod.at(service.target(RAW))?);
            match service.shape {
                Shape::Http | Shape::Mixed => {
                    http.push(Http1Backend::named(pod.netns(), web, &service.name()).await?);
                }
                Shape::H2c => h2.push(H2Backend::named(pod.netns(), web, &service.name()).await?),
                Shape::Tcp => {}
            }
            if service.raw() {
                tcp.push(backend::echo(pod.netns(), raw).await?);
            }
        }
        Ok(Self { all, _http: http, _h2: h2, _tcp: tcp })
    }

    /// The manifests, a file each: its name and its objects.
    pub(super) fn objects(&self, backend: IpAddr) -> Vec<(String, [Object; 2])> {
        self.all.iter().map(|service| (service.name(), service.objects(backend))).collect()
    }

    /// A worker for each protocol of each.
    pub(super) fn work(&self) -> Vec<Work> {
        let mut work = Vec::new();
        for service in &self.all {
            if service.web() {
                let (address, host) = (service.address(WEB), service.spelling());
                work.push(Work::Http { address, host, body: service.name() });
            }
            if service.raw() {
                work.push(Work::Echo { address: service.address(RAW) });
            }
        }
        work
    }
}

impl Service {
    fn name(self) -> String {
        format!("svc-{}", self.n)
    }

    fn web(self) -> bool {
        self.shape != Shape::Tcp
    }

    fn raw(self) -> bool {
        matches!(self.shape, Shape::Tcp | Shape::Mixed)
    }

    fn address(self, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(10, 96, 1, self.n).into(), port)
    }

    /// Where the backend of a port listens.
    fn target(self, port: u16) -> u16 {
        if port == WEB { 8000 + u16::from(self.n) } else { 9000 + u16::from(self.n) }
    }

    /// What its caller writes: the services take turns among the spellings.
    fn spelling(self) -> String {
        let name = self.name();
        match self.n % 6 {
            0 => format!("{name}.{NAMESPACE}.svc.cluster.local"),
            1 => format!("{name}.{NAMESPACE}.aether.internal:80"),
            2 => format!("{name}.{NAMESPACE}"),
            3 => name,
            4 => format!("{name}.{NAMESPACE}.svc"),
            _ => self.address(WEB).ip().to_string(),
        }
    }

    fn objects(self, backend: IpAddr) -> [Object; 2] {
        let name = self.name();
        let mut service = Object::service(NAMESPACE, &name, &self.address(WEB).ip().to_string());
        let mut slice = Object::slice(NAMESPACE, &name, "1", false).endpoint(backend);
        if self.web() {
            let protocol = if self.shape == Shape::H2c { "kubernetes.io/h2c" } else { "http" };
            service = service.port("web", WEB, protocol);
            slice = slice.target("web", self.target(WEB));
        }
        if self.raw() {
            service = service.port("raw", RAW, "echo");
            slice = slice.target("raw", self.target(RAW));
        }
        [service, slice]
    }
}
