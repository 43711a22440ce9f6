//! One Envoy of a node for the pods of two namespaces, each in its own network namespace.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::aether::{Aether, Over};
use it::backend::{self, Http1Backend};
use it::client;
use it::envoy::Envoy;
use it::net::{Escape, Mode, NODE_V4, Net, Netns, Pod, Redirect};
use it::node_proxy::Pins;
use it::world::{Object, World, served};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

const SOON: Duration = Duration::from_secs(20);
const NODE: &str = "node/worker-1";
const REFUSED: &str = "listener_manager.lds.update_rejected";

/// Answers whoever connects with the address from which it came: at once to raw bytes, by HTTP to a request.
async fn mirror(netns: &Netns, to: SocketAddr) -> Result<AbortOnDropHandle<()>> {
    let listener = netns.run(async move { Ok(TcpListener::bind(to).await?) }).await?;
    netns.spawn(async move {
        while let Ok((mut stream, peer)) = listener.accept().await {
            tokio::spawn(async move {
                let mut first = [0; 512];
                let n = stream.read(&mut first).await.unwrap_or(0);
                let from = peer.ip().to_string();
                let answer = if first[..n].starts_with(b"GET ") {
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{from}", from.len())
                } else {
                    format!("{from:<48}")
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    })
}

/// A pod of the mesh, and the uid of its object.
struct Member {
    namespace: &'static str,
    uid: String,
    pod: Pod,
}

impl Member {
    fn new(net: &Net, namespace: &'static str, uid: &str) -> Result<Self> {
        let pod = net.pod()?;
        pod.redirect(&Redirect { escape: Escape::Mark, ..Redirect::new(Mode::All) })?;
        Ok(Self { namespace, uid: uid.to_owned(), pod })
    }

    fn object(&self, name: &str) -> Object {
        Object::pod(self.namespace, name, "worker-1", self.pod.addresses())
            .with(&["metadata", "uid"], self.uid.as_str())
    }

    async fn http(&self, to: SocketAddr, host: &'static str) -> Result<String> {
        let ask = async move { client::get(to, host, "/").await };
        let answer = self.pod.run(ask).await?;
        Ok(format!("{} {}", answer.status()?, answer.text()))
    }

    async fn raw(&self, to: SocketAddr, length: usize) -> Result<String> {
        let said =
            self.pod.run(async move { client::say(to, b"\0hi\0\0\0\n", length).await }).await?;
        Ok(String::from_utf8_lossy(&said.0).trim().to_owned())
    }
}

/// A server over a world with an HTTP and a TCP service, and the Envoy of the node `worker-1`.
struct Stage {
    envoy: Envoy,
    aether: Aether,
    pins: Pins,
    world: World,
    _server: Pod,
    _backends: (Http1Backend, backend::Backend, Vec<AbortOnDropHandle<()>>),
    stranger: Pod,
    net: Net,
}

impl Stage {
    async fn set(options: &[&str], own_mounts: bool) -> Result<Self> {
        let (net, pins, world) = (Net::new()?, Pins::new()?, World::new()?);
        let server = net.pod()?;
        let stranger = net.pod_at(&["198.51.100.7".parse()?, "2001:db8::7".parse()?])?;
        let web = Http1Backend::named(server.netns(), server.at(8080)?, "web").await?;
        let db = backend::greeter(server.netns(), server.at(3306)?, "greetings\n").await?;
        let mut mirrors = Vec::new();
        for ip in stranger.addresses() {
            mirrors.push(mirror(stranger.netns(), SocketAddr::new(*ip, 4242)).await?);
        }
        mirrors.push(mirror(server.netns(), server.at(4242)?).await?);
        let ip = server.v4()?;
        let mut objects = vec![Object::node("worker-1", "eu", "eu-1")];
        objects.extend(served(
            "shop/web",
            &["10.96.1.10", "fd00:96::10"],
            &[(80, "http", 8080)],
            ip,
        )?);
        objects.extend(served(
            "shop/db",
            &["10.96.1.11", "fd00:96::11"],
            &[(3306, "tcp", 3306)],
            ip,
        )?);
        objects.extend(served("pay/whom", &["10.96.1.12"], &[(4242, "tcp", 4242)], ip)?);
        world.put("all", &objects)?;
        let folder = pins.path().display().to_string();
        let mut all = vec!["--netns-dir", &folder, "--log", "info,aether::source::pins=debug"];
        all.extend(options);
        let mut aether = Aether::start(&net, world.path(), &all)?;
        aether.serving(SOON).await?;
        let bootstrap = aether.bootstrap(NODE, Over::Socket, &[])?;
        let mut envoy = Envoy::on_node(&net, &bootstrap, own_mounts)?;
        // A node without pods is ready, and has nothing.
        envoy.ready(SOON).await?;
        ensure!(envoy.listeners().await?.is_empty());
        Ok(Self {
            envoy,
            aether,
            pins,
            world,
            _server: server,
            _backends: (web, db, mirrors),
            stranger,
            net,
        })
    }

    /// Waits until the Envoy has these listeners.
    async fn listens(&self, wanted: &[&str]) -> Result<()> {
        let ask = || async {
            let mut names = self.envoy.listeners().await?;
            names.sort();
            ensure!(names == wanted, "{names:?}, not {wanted:?}; aether:\n{}", self.aether.log());
            Ok(())
        };
        it::eventually("listeners", SOON, ask).await
    }

    /// That all kinds of traffic of a pod take the way that they should.
    async fn works(&self, member: &Member) -> Result<()> {
        for to in ["10.96.1.10:80", "[fd00:96::10]:80"] {
            let answer = member.http(to.parse()?, "web.shop").await?;
            ensure!(answer == "200 web", "{to}: {answer}");
        }
        for to in ["10.96.1.11:3306", "[fd00:96::11]:3306"] {
            let said = member.raw(to.parse()?, 10).await?;
            ensure!(said == "greetings", "{to}: {said}");
        }
        // The bare name means the pod's own namespace.
        let own = member.http("10.96.1.10:80".parse()?, "web").await?;
        ensure!((own == "200 web") == (member.namespace == "shop"), "{}: {own}", member.namespace);
        // A mesh service is called by the node; what passes through by the pod itself.
        let from = member.raw("10.96.1.12:4242".parse()?, 48).await?;
        ensure!(from == NODE_V4.to_string(), "{from}");
        for ip in self.stranger.addresses() {
            let to = SocketAddr::new(*ip, 4242);
            let own: IpAddr = if ip.is_ipv4() { member.pod.v4()? } else { member.pod.v6()? };
            let from = member.raw(to, 48).await?;
            ensure!(from == own.to_string(), "raw: {from}, not {own}");
            let from = member.http(to, "stranger.example").await?;
            ensure!(from == format!("200 {own}"), "HTTP: {from}, not {own}");
        }
        Ok(())
    }
}

#[tokio::test]
async fn two_pods_of_two_namespaces_share_an_envoy_and_come_and_go_in_any_order() -> Result<()> {
    let stage = Stage::set(&["--dns-filter"], false).await?;
    let (a, b) =
        (Member::new(&stage.net, "shop", "uid-a")?, Member::new(&stage.net, "pay", "uid-b")?);
    // The file first, then the object.
    stage.pins.pin("uid-a", &a.pod)?;
    stage.world.put("a", &[a.object("web-0")])?;
    stage.listens(&["capture_shop_web-0", "dns_shop_web-0"]).await?;
    stage.works(&a).await.context("a alone")?;
    // The object first, then the file.
    stage.world.put("b", &[b.object("till")])?;
    stage.pins.pin("uid-b", &b.pod)?;
    let both = ["capture_pay_till", "capture_shop_web-0", "dns_pay_till", "dns_shop_web-0"];
    stage.listens(&both).await?;
    stage.works(&b).await.context("b beside a")?;
    stage.works(&a).await.context("a beside b")?;
    // Each has what passes through in the cluster that all share.
    ensure!(stage.envoy.stat("cluster.passthrough_original_dst.upstream_cx_total").await? >= 12);
    for member in [&a, &b] {
        for own in ["127.0.0.1:18053", "[::1]:18053"] {
            let own: SocketAddr = own.parse()?;
            let ask = async move { client::ask(own, "web.aether.internal", false, SOON).await };
            let records = member.pod.run(ask).await?;
            ensure!(records.addresses == ["10.96.1.10".parse::<IpAddr>()?], "{records:?}");
        }
    }

    // A connection of one goes on while the other comes and goes, by object and by file.
    let held = stage.stranger.v4()?;
    let mut open =
        a.pod.run(async move { client::Http1::connect((held, 4242).into()).await }).await?;
    stage.world.remove("b")?;
    stage.listens(&["capture_shop_web-0", "dns_shop_web-0"]).await?;
    stage.world.put("b", &[b.object("till")])?;
    stage.listens(&both).await?;
    stage.pins.unmount("uid-b")?;
    stage.listens(&["capture_shop_web-0", "dns_shop_web-0"]).await?;
    std::fs::remove_file(stage.pins.file("uid-b"))?;
    drop(b);
    let answer = open.exchange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    ensure!(answer.text() == a.pod.v4()?.to_string(), "{answer:?}");
    ensure!(stage.envoy.stat(REFUSED).await? == 0, "{}", stage.aether.log());

    // The pod is made anew under its name, in another network namespace.
    stage.pins.unpin("uid-a")?;
    drop(a);
    let a = Member::new(&stage.net, "shop", "uid-c")?;
    stage.pins.pin("uid-c", &a.pod)?;
    stage.world.put("a", &[a.object("web-0")])?;
    it::eventually("the new pod is served", SOON, || stage.works(&a)).await?;
    // Its sandbox is made anew: another namespace under the same uid.
    let again = Member::new(&stage.net, "shop", "uid-c")?;
    stage.pins.unpin("uid-c")?;
    stage.pins.pin("uid-c", &again.pod)?;
    it::eventually("the new sandbox is served", SOON, || stage.works(&again)).await?;
    ensure!(stage.envoy.stat(REFUSED).await? == 0, "{}", stage.aether.log());
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_envoy_cannot_enter_costs_its_own_listener_and_comes_back() -> Result<()> {
    let mut stage = Stage::set(&[], true).await?;
    let (a, b) =
        (Member::new(&stage.net, "shop", "uid-a")?, Member::new(&stage.net, "pay", "uid-b")?);
    // The mounts are made where this Envoy does not see them: to it, both are ordinary files.
    for member in [&a, &b] {
        stage.pins.pin(&member.uid, &member.pod)?;
    }
    stage.pins.pin_for(&mut stage.envoy, "uid-a", &a.pod)?;
    stage.world.put("pods", &[a.object("web-0"), b.object("till")])?;
    stage.listens(&["capture_shop_web-0"]).await?;
    stage.envoy.stat_is(REFUSED, SOON, |count| count >= 1).await?;
    stage.works(&a).await?;
    let told = stage.aether.log();
    let warns = |line: &str| line.contains("WARN") && line.contains("capture_pay_till");
    ensure!(told.lines().any(warns) && told.contains(NODE), "{told}");
    // It is tried again, and said once.
    stage.envoy.stat_is(REFUSED, SOON, |count| count >= 3).await?;
    let told = stage.aether.log();
    ensure!(told.matches("the proxy refused it").count() == 1, "{told}");
    stage.pins.pin_for(&mut stage.envoy, "uid-b", &b.pod)?;
    stage.listens(&["capture_pay_till", "capture_shop_web-0"]).await?;
    stage.works(&b).await?;
    stage.works(&a).await
}
