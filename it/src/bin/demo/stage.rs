//! What the demo plays on: a node, the callers' pods with their Envoys, and the services' pods.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use it::aether::{Aether, Over};
use it::backend::{self, Backend, DnsBackend, Http1Backend, Reply, Zone};
use it::envoy::Envoy;
use it::net::{Mode, Net, Pod, Redirect};
use it::world::World;

/// The cluster's nameserver, as every pod's resolv.conf has it.
pub(crate) const NAMESERVER: SocketAddr =
    SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 96, 0, 10)), 53);
const LIMIT: Duration = Duration::from_secs(20);

/// A pod that calls others, and does not know that it is captured.
pub(crate) struct Caller {
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
    // Before its pod, in which it runs.
    pub(crate) envoy: Envoy,
    pub(crate) pod: Pod,
}

/// Everything that runs. Dropped, all of it ends.
pub(crate) struct Stage {
    pub(crate) frontend: Caller,
    pub(crate) till: Caller,
    pub(crate) world: World,
    _aether: Aether,
    _servers: Servers,
    _net: Net,
}

/// The pods of the services. None of them has a proxy.
struct Servers {
    _http: Vec<Http1Backend>,
    _others: Vec<Backend>,
    _dns: DnsBackend,
    _pods: Vec<Pod>,
}

/// A folder of this package.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

impl Stage {
    /// Sets everything up, saying what it does.
    pub(crate) async fn set() -> Result<Self> {
        let begin = Instant::now();
        let net = Net::new()?;
        let servers = servers(&net).await?;
        let world = World::copy_of(&folder("demo-manifests"))?;
        let upstream = "10.244.0.53:53";
        let mut aether =
            Aether::start(&net, world.path(), &["--dns-filter", "--dns-upstream", upstream])?;
        aether.serving(LIMIT).await?;
        println!(
            "aether serve follows {} and serves after {:.0?}",
            world.path().display(),
            begin.elapsed()
        );
        let frontend = caller(&net, &aether, "shop", "frontend", "10.244.1.10")?;
        let till = caller(&net, &aether, "pay", "till", "10.244.2.10")?;
        let mut stage =
            Self { frontend, till, world, _aether: aether, _servers: servers, _net: net };
        for caller in [&mut stage.frontend, &mut stage.till] {
            let node = format!("pod/{}/{}", caller.namespace, caller.name);
            caller.envoy.ready(LIMIT).await.with_context(|| format!("the Envoy of {node}"))?;
            let listeners = caller.envoy.listeners().await?.join(", ");
            println!("Envoy {node} runs as user 1337 and has got: {listeners}");
        }
        println!("all is up after {:.1} s\n", begin.elapsed().as_secs_f32());
        Ok(stage)
    }
}

/// A caller's pod, its traffic redirected, its Envoy started.
fn caller(
    net: &Net,
    aether: &Aether,
    namespace: &'static str,
    name: &'static str,
    address: &str,
) -> Result<Caller> {
    let pod = net.pod_at(&[address.parse()?])?;
    pod.redirect(&Redirect::new(Mode::All).nameserver(NAMESERVER.ip()))?;
    let bootstrap = aether.bootstrap(&format!("pod/{namespace}/{name}"), Over::Socket, &[])?;
    let envoy = Envoy::start(&pod, &bootstrap)?;
    Ok(Caller { namespace, name, envoy, pod })
}

/// Starts the services of the manifests, a stranger whom nobody's mesh knows, and the cluster's nameserver.
async fn servers(net: &Net) -> Result<Servers> {
    let mut pods = Vec::new();
    let mut http = Vec::new();
    let mut others = Vec::new();
    for (address, port, words) in [
        ("10.244.1.21", 8080, "I am web-1 of shop"),
        ("10.244.1.22", 8080, "I am web-2 of shop"),
        ("10.244.1.41", 8080, "I am coupons of shop"),
        ("10.244.2.31", 8080, "I am stock of pay"),
        ("10.244.2.41", 8080, "I am web of pay"),
        ("198.51.100.7", 80, "I am a stranger on the internet"),
    ] {
        let pod = net.pod_at(&[address.parse()?])?;
        let backend = Http1Backend::named(pod.netns(), pod.at(port)?, words).await?;
        http.push(backend);
        match address {
            "10.244.2.31" => others.push(backend::echo(pod.netns(), pod.at(9000)?).await?),
            "198.51.100.7" => {
                others.push(
                    backend::greeter(pod.netns(), pod.at(22)?, "SSH-2.0-stranger\r\n").await?,
                );
            }
            "10.244.1.21" | "10.244.1.22" => {
                let status = |_: &_| Reply::ok("all is well");
                http.push(Http1Backend::start(pod.netns(), pod.at(8081)?, status).await?);
                others.push(backend::ws_echo(pod.netns(), pod.at(8082)?).await?);
            }
            _ => {}
        }
        pods.push(pod);
    }
    let api = net.pod_at(&["10.244.1.31".parse()?])?;
    others.push(backend::grpc(api.netns(), api.at(50051)?).await?);
    let ledger = net.pod_at(&["10.244.2.21".parse()?])?;
    others.push(backend::greeter(ledger.netns(), ledger.at(3306)?, "ledger 1.0\n").await?);
    let nameserver = net.pod_at(&["10.244.0.53".parse()?])?;
    let dns = DnsBackend::start(nameserver.netns(), nameserver.at(53)?, zone()?).await?;
    pods.extend([api, ledger, nameserver]);
    Ok(Servers { _http: http, _others: others, _dns: dns, _pods: pods })
}

/// What the cluster's nameserver knows: the Services under their cluster names, and one name of the world.
fn zone() -> Result<Zone> {
    let names = [
        ("web.shop.svc.cluster.local", "10.96.1.10"),
        ("api.shop.svc.cluster.local", "10.96.1.11"),
        ("coupons.shop.svc.cluster.local", "10.96.1.12"),
        ("ledger.pay.svc.cluster.local", "10.96.2.10"),
        ("stock.pay.svc.cluster.local", "10.96.2.11"),
        ("web.pay.svc.cluster.local", "10.96.2.12"),
        ("stranger.example", "198.51.100.7"),
    ];
    let entries = names.into_iter().map(|(name, ip)| Ok((name.to_owned(), vec![ip.parse()?])));
    entries.collect()
}
