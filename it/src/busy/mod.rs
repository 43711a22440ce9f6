//! A mesh under load: twenty services, and callers with real Envoys that call all of them all the time.

mod services;
mod told;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::aether::{Aether, Over};
use crate::counters::Counters;
use crate::envoy::Envoy;
use crate::eventually;
use crate::load::{Load, Pace, Work};
use crate::net::{Mode, Net, Pod, Redirect};
use crate::world::{Object, World};
use services::Services;

/// The namespace of the twenty services and of their callers.
pub const NAMESPACE: &str = "busy";
/// How long anything of the start may take.
const LIMIT: Duration = Duration::from_secs(30);

/// What `aether serve` is started with: the log says when a snapshot was made.
const LOG: [&str; 2] = ["--log", "info,aether::capture=debug"];

/// How a caller's Envoy asks for its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Incremental xDS over the Unix socket.
    Delta,
    /// State-of-the-world xDS over TCP.
    Sotw,
}

/// A pod whose whole traffic is captured.
#[derive(Debug)]
pub struct Caller {
    /// Its proxy. Before the pod, in which it runs.
    pub envoy: Envoy,
    /// The pod.
    pub pod: Pod,
    /// How its proxy asks.
    pub speaks: Speaks,
}

/// Everything that runs. Dropped, all of it ends.
#[derive(Debug)]
pub struct Busy {
    /// The callers, in the order in which they were asked for.
    pub callers: Vec<Caller>,
    /// The program under test.
    pub aether: Aether,
    /// Its folder.
    pub world: World,
    services: Services,
    /// The pod in which all backends listen.
    pub servers: Pod,
    /// The node.
    pub net: Net,
}

impl Busy {
    /// Starts everything, a caller for each of these, and waits until their proxies are warm.
    pub async fn start(callers: &[Speaks]) -> Result<Self> {
        Self::start_with(callers, &[]).await
    }

    /// The same with these further arguments for the Envoys.
    pub async fn start_with(callers: &[Speaks], arguments: &[&str]) -> Result<Self> {
        let net = Net::new()?;
        let servers = net.pod()?;
        let services = Services::start(&servers).await?;
        let world = World::new()?;
        world.put("namespaces", &[Object::namespace(NAMESPACE)])?;
        for (name, objects) in services.objects(servers.v4()?) {
            world.put(&name, &objects)?;
        }
        let mut pods = Vec::new();
        for (n, speaks) in callers.iter().enumerate() {
            let pod = net.pod()?;
            pod.redirect(&Redirect::new(Mode::All))?;
            let object = Object::pod(NAMESPACE, &format!("caller-{n}"), "node", pod.addresses());
            world.put(&format!("caller-{n}"), &[object])?;
            pods.push((pod, *speaks));
        }
        let mut aether = Aether::start(&net, world.path(), &LOG)?;
        aether.serving(LIMIT).await?;
        let callers = pods.into_iter().enumerate().map(|(n, (pod, speaks))| {
            let (over, options): (_, &[&str]) = match speaks {
                Speaks::Delta => (Over::Socket, &[]),
                Speaks::Sotw => (Over::Tcp, &["--protocol", "sotw"]),
            };
            let node = format!("pod/{NAMESPACE}/caller-{n}");
            let bootstrap = aether.bootstrap(&node, over, options)?;
            Ok(Caller { envoy: Envoy::start_with(&pod, &bootstrap, arguments)?, pod, speaks })
        });
        let mut callers = callers.collect::<Result<Vec<_>>>()?;
        for caller in &mut callers {
            let speaks = caller.speaks;
            caller.envoy.ready(LIMIT).await.with_context(|| format!("{speaks:?}"))?;
        }
        Ok(Self { callers, aether, world, services, servers, net })
    }

    /// A worker for each protocol of each service.
    pub fn work(&self) -> Vec<Work> {
        self.services.work()
    }

    /// Has every caller call all services, each on a connection of its own, and waits until all of them are answered.
    pub async fn loads(&self) -> Result<Vec<Load>> {
        // Debug builds of clients and backends share a small machine with the Envoys.
        let pace = Pace { pause: Duration::from_millis(25), ..Pace::default() };
        let work = self.work();
        let start = |caller: &Caller| Load::start(caller.pod.netns(), &work, pace);
        let loads = self.callers.iter().map(start).collect::<Result<Vec<_>>>()?;
        let workers = work.len() as u64;
        for caller in &self.callers {
            let answered = || async {
                let names =
                    "^(listener.capture.downstream_cx_active|http.cap_http.downstream_rq_2xx)$";
                let now = Counters::of(&caller.envoy, names).await?;
                let connections = now.get("listener.capture.downstream_cx_active");
                let answers = now.get("http.cap_http.downstream_rq_2xx");
                ensure!(connections == workers && answers > 5 * workers, "{now:?}");
                Ok(())
            };
            eventually("load", LIMIT, answered).await?;
        }
        Ok(loads)
    }

    /// Ends the loads of all callers: an error unless every request was answered and every connection kept.
    pub async fn flawless(&self, loads: Vec<Load>) -> Result<()> {
        for (load, Caller { speaks, .. }) in loads.into_iter().zip(&self.callers) {
            let report = load.stop().await?;
            println!(
                "{speaks:?}: {} answers, the slowest after {:.0?}",
                report.answered, report.slowest
            );
            report.flawless(self.work().len()).with_context(|| format!("{speaks:?}"))?;
        }
        Ok(())
    }
}
