//! A pod that lists its upstreams, in a real Envoy: what is listed is reached, the rest is none of the mesh to it, and a
//! list that changes acts at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use it::aether::{Aether, Over};
use it::backend::{self, Backend, Http1Backend};
use it::client;
use it::envoy::{DRAIN_TIME, Envoy};
use it::net::{Mode, Net, Pod, Redirect};
use it::world::{Object, World, served};

const LIMIT: Duration = Duration::from_mins(1);
/// From a change of the annotation until all of it has acted, what drains included.
const SOON: Duration = Duration::from_secs(20);
const UPSTREAMS: &str = "config.aether.io/upstreams";
const NAMESERVER: &str = "10.96.0.10";
const BACKENDS: &str = "10.244.9.1";
const CALLER: &str = "10.244.0.101";
const WEB: &str = "10.96.1.10";
const API: &str = "10.96.1.11";
const LEDGER: &str = "10.96.2.10";

struct Stage {
    caller: Pod,
    envoy: Envoy,
    aether: Aether,
    world: World,
    _http: Vec<Http1Backend>,
    _tcp: Vec<Backend>,
    _pods: Vec<Pod>,
    _net: Net,
}

impl Stage {
    /// The pod `shop/caller`, before it lists anything.
    async fn set(mode: Mode, serve: &[&str], over: Over, options: &[&str]) -> Result<Self> {
        let net = Net::new()?;
        let servers = net.pod_at(&[BACKENDS.parse()?])?;
        // What is at the ClusterIPs themselves: who passes through comes here.
        let original = net.pod_at(&[WEB.parse()?, API.parse()?, LEDGER.parse()?])?;
        let mut http = Vec::new();
        for (port, name) in [(8080, "web"), (8081, "api")] {
            http.push(Http1Backend::named(servers.netns(), servers.at(port)?, name).await?);
        }
        for ip in [WEB, API] {
            let at = SocketAddr::new(ip.parse()?, 80);
            http.push(Http1Backend::named(original.netns(), at, "original").await?);
        }
        let ledger = SocketAddr::new(LEDGER.parse()?, 3306);
        let tcp = vec![
            backend::greeter(servers.netns(), servers.at(3306)?, "ledger\n").await?,
            backend::greeter(original.netns(), ledger, "beyond\n").await?,
        ];
        let server: IpAddr = BACKENDS.parse()?;
        let mut objects = vec![
            Object::node("node", "region", "zone"),
            Object::namespace("shop"),
            Object::namespace("pay"),
        ];
        objects.extend(served("shop/web", &[WEB], &[(80, "http", 8080)], server)?);
        objects.extend(served("shop/api", &[API], &[(80, "http", 8081)], server)?);
        objects.extend(served("pay/ledger", &[LEDGER], &[(3306, "mysql", 3306)], server)?);
        let world = World::new()?;
        world.put("all", &objects)?;
        list(&world, None)?;

        let mut aether = Aether::start(&net, world.path(), serve)?;
        aether.serving(LIMIT).await?;
        let caller = net.pod_at(&[CALLER.parse()?])?;
        caller.redirect(&Redirect::new(mode).nameserver(NAMESERVER.parse()?))?;
        let bootstrap = aether.bootstrap("pod/shop/caller", over, options)?;
        let mut envoy = Envoy::start_with(&caller, &bootstrap, &[DRAIN_TIME, "2"])?;
        envoy.ready(LIMIT).await?;
        let (pods, net) = (vec![servers, original], net);
        Ok(Self { caller, envoy, aether, world, _http: http, _tcp: tcp, _pods: pods, _net: net })
    }

    /// Who answers a request for this host, and with which status.
    async fn get(&self, ip: &str, port: u16, host: &str) -> Result<(u16, String)> {
        let (to, host) = (SocketAddr::new(ip.parse()?, port), host.to_owned());
        let get = async move { client::get(to, &host, "/").await };
        let answer = self.caller.run(get).await?;
        Ok((answer.status()?, answer.text()))
    }

    /// Who greets on the ledger's port.
    async fn greets(&self) -> Result<String> {
        let to = SocketAddr::new(LEDGER.parse()?, 3306);
        let (said, _) = self.caller.run(async move { client::say(to, b"", 7).await }).await?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Who answers for web and api, by host, and for the ledger, by address.
    async fn reached(&self) -> Result<[String; 3]> {
        let (_, web) = self.get(WEB, 80, "web").await?;
        let (_, api) = self.get(API, 80, "api.shop.svc.cluster.local").await?;
        Ok([web, api, self.greets().await?])
    }

    /// Waits until exactly these are reached through the mesh, and the others where they are.
    async fn reaches(&self, web: bool, api: bool, ledger: bool) -> Result<()> {
        let http = |listed, name: &str| if listed { name } else { "original" }.to_owned();
        let greeting = if ledger { "ledger" } else { "beyond" }.to_owned();
        let expected = [http(web, "web"), http(api, "api"), greeting];
        it::eventually("what is listed", SOON, || async {
            let reached = self.reached().await?;
            ensure!(reached == expected, "{reached:?}, not {expected:?}");
            Ok(())
        })
        .await
    }

    /// What a command of `aether` prints of these objects.
    fn says(&self, command: &[&str]) -> Result<String> {
        let folder = self.world.path().display().to_string();
        let output = it::aether::run(&[command, &["--manifests", &folder]].concat())?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Waits until Envoy's whole configuration holds all of some words and none of others.
    async fn holds(&self, there: &[&str], gone: &[&str]) -> Result<()> {
        it::eventually("the configuration", SOON, || async {
            let dump = self.envoy.config_dump().await?.to_string();
            for word in there {
                ensure!(dump.contains(word), "{word} is not there");
            }
            for word in gone {
                ensure!(!dump.contains(word), "{word} is there");
            }
            Ok(())
        })
        .await
    }

    async fn resolves(&self, name: &str) -> Result<Vec<IpAddr>> {
        let (to, name) = (SocketAddr::new(NAMESERVER.parse()?, 53), name.to_owned());
        let ask = async move { client::ask(to, &name, false, SOON).await };
        Ok(self.caller.run(ask).await?.addresses)
    }
}

/// Writes the caller's pod, with this list.
fn list(world: &World, upstreams: Option<&str>) -> Result<()> {
    let pod = Object::pod("shop", "caller", "node", &[CALLER.parse()?]);
    let pod = upstreams.into_iter().fold(pod, |pod, list| pod.annotation(UPSTREAMS, list));
    world.put("caller", &[pod])
}

/// Words of the configuration that belong to one service each.
const OF_WEB: &[&str] = &["web.shop", "shop/web"];
const OF_API: &[&str] = &["api.shop", "shop/api"];
const OF_LEDGER: &[&str] = &["ledger.pay", "pay/ledger"];

#[tokio::test(flavor = "multi_thread")]
async fn a_list_scopes_everything_and_acts_at_once() -> Result<()> {
    let stage = Stage::set(Mode::All, &["--dns-filter"], Over::Socket, &[]).await?;
    stage.reaches(true, true, true).await?;
    stage.holds(&[OF_WEB, OF_API, OF_LEDGER, &["cap_http.shop/any"]].concat(), &[]).await?;
    ensure!(stage.resolves("api.shop.aether.internal").await? == [API.parse::<IpAddr>()?]);

    // Requests to what stays listed go on meanwhile, and none of them notices.
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stage.caller.netns().spawn({
        let (stop, to) = (stop.clone(), SocketAddr::new(WEB.parse()?, 80));
        async move {
            let (mut count, mut wrong) = (0_u32, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let answer = client::get(to, "web", "/").await;
                let answer = answer.and_then(|answer| Ok((answer.status()?, answer.text())));
                count += 1;
                match answer {
                    Ok((200, text)) if text == "web" => {}
                    other => wrong.push(format!("{other:?}")),
                }
            }
            (count, wrong)
        }
    })?;
    let start = std::time::Instant::now();
    list(&stage.world, Some("web"))?;
    stage.reaches(true, false, false).await?;
    let acted = start.elapsed();
    let scoped = ["cap_http.shop.caller/any", "passthrough_original_dst"];
    stage
        .holds(&[OF_WEB, &scoped].concat(), &[OF_API, OF_LEDGER, &["cap_http.shop/"]].concat())
        .await?;
    let drained = start.elapsed();
    let rendered = stage.says(&["render", "--node", "pod/shop/caller"])?;
    for (words, expected) in
        [(OF_WEB, true), (&scoped[..], true), (OF_API, false), (OF_LEDGER, false)]
    {
        ensure!(
            words.iter().all(|word| rendered.contains(word) == expected),
            "{words:?}: {rendered}"
        );
    }
    // Another list with that service in it, and none again.
    list(&stage.world, Some("pay/ledger, web"))?;
    stage.reaches(true, false, true).await?;
    list(&stage.world, None)?;
    stage.reaches(true, true, true).await?;
    stage.holds(&[OF_WEB, OF_API, OF_LEDGER].concat(), &["cap_http.shop.caller"]).await?;
    stop.store(true, Ordering::Relaxed);
    let (count, wrong) = asked.await?;
    eprintln!("acted after {acted:?}, drained after {drained:?}; {count} requests meanwhile");
    ensure!(wrong.is_empty() && count > 100, "{} of {count}: {:?}", wrong.len(), wrong.first());

    list(&stage.world, Some("api,pay/ledger,shop/ghost"))?;
    stage.reaches(false, true, true).await?;
    stage.holds(&[OF_API, OF_LEDGER].concat(), OF_WEB).await?;
    ensure!(stage.resolves("web.shop.aether.internal").await?.is_empty(), "web is no name here");
    ensure!(stage.resolves("ledger.pay.aether.internal").await? == [LEDGER.parse::<IpAddr>()?]);
    // Nobody bears this name: it may come, and is a warning.
    ensure!(stage.aether.log().contains("shop/ghost"), "{}", stage.aether.log());
    let warned = stage.says(&["check"])?;
    ensure!(warned.contains("warning Suspicious: Pod shop/caller"), "{warned}");
    list(&stage.world, Some(""))?;
    stage.reaches(false, false, false).await?;
    stage.holds(&["passthrough_original_dst"], &[OF_WEB, OF_API, OF_LEDGER].concat()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn in_scoped_capture_what_is_not_listed_is_no_mesh_service() -> Result<()> {
    let serve = ["--capture-mode", "scoped"];
    let stage = Stage::set(Mode::Scoped, &serve, Over::Tcp, &["--protocol", "sotw"]).await?;
    let answers = |web: bool, api: bool| {
        let stage = &stage;
        it::eventually("what is listed", SOON, move || async move {
            for (ip, name, listed) in [(WEB, "web", web), (API, "api", api)] {
                let (status, text) = stage.get(ip, 18081, &format!("{name}.shop")).await?;
                let right = if listed {
                    status == 200 && text == name
                } else {
                    status == 404 && text.contains("is no mesh service")
                };
                ensure!(right, "{name}: {status} {text:?}");
            }
            Ok(())
        })
    };
    answers(true, true).await?;
    list(&stage.world, Some("shop/web"))?;
    answers(true, false).await?;
    stage
        .holds(&[OF_WEB, &["cap_http.shop.caller"]].concat(), &[OF_API, OF_LEDGER].concat())
        .await?;
    list(&stage.world, Some("shop/api"))?;
    answers(false, true).await?;
    list(&stage.world, Some(""))?;
    answers(false, false).await?;
    list(&stage.world, None)?;
    answers(true, true).await
}
