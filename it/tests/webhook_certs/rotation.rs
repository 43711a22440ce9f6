//! The rotation under load: pods are created all the time while authorities change, and replicas and leaders end.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use it::eventually;
use kube::Client;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::balancer::Balancer;
use crate::stage::{RBAC, Replica, SOON, Stage, create};

const OVERLAP: Duration = Duration::from_secs(2);
/// How far behind an API server may be that must still trust: less a moment for the handshake itself.
const BEHIND: Duration = Duration::from_millis(1800);
const SHORT: [&str; 6] =
    ["--webhook-ca-lifetime", "18s", "--webhook-cert-lifetime", "6s", "--webhook-ca-overlap", "2s"];
/// Pods in a second.
const RATE: u32 = 50;

/// Creates pods for as long as it lives.
pub struct Load {
    created: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    task: AbortOnDropHandle<Result<()>>,
}

impl Load {
    pub fn start(client: Client) -> Self {
        let (created, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (created.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs(1) / RATE);
            let mut under_way = tokio::task::JoinSet::new();
            for number in 0_u64.. {
                tick.tick().await;
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                // As many as a busy machine can take.
                if under_way.len() >= 16 {
                    under_way.join_next().await.context("a pod")???;
                }
                let (client, counted) = (client.clone(), counted.clone());
                under_way.spawn(async move {
                    let pod = create(&client, &format!("load-{number}")).await;
                    let pod = pod.with_context(|| format!("pod {number}"))?;
                    ensure!(pod["metadata"]["labels"]["aether.io/managed"] == "true", "{pod}");
                    counted.fetch_add(1, Ordering::Relaxed);
                    anyhow::Ok(())
                });
            }
            while let Some(done) = under_way.join_next().await {
                done??;
            }
            Ok(())
        });
        Self { created, stop, task: AbortOnDropHandle::new(task) }
    }

    pub async fn end(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await??;
        Ok(self.created.load(Ordering::Relaxed))
    }
}

/// Shakes hands with a replica as an API server would that trusts this bundle.
async fn shakes(replica: SocketAddr, bundle: &[u8]) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(bundle) {
        roots.add(der?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(replica).await?;
    let name = ServerName::IpAddress(replica.ip().into());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(())
}

/// Shakes hands with replicas all the time, with the bundle as it is and as it was at any moment within the overlap.
struct Shaker {
    done: Arc<AtomicU64>,
    task: AbortOnDropHandle<Result<()>>,
}

impl Shaker {
    fn start(stage: &Stage, replicas: Vec<SocketAddr>) -> Self {
        let api = stage.configurations();
        let done = Arc::new(AtomicU64::new(0));
        let counted = done.clone();
        let task = tokio::spawn(async move {
            let mut seen: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
            loop {
                let begun = Instant::now();
                let object = api.get("aether").await?;
                for entry in object.webhooks.unwrap_or_default() {
                    let bundle = entry.client_config.ca_bundle.unwrap_or_default().0;
                    // The last moment at which it was certainly live counts.
                    seen.retain(|(_, old)| *old != bundle);
                    seen.push_back((begun, bundle));
                }
                for replica in &replicas {
                    seen.retain(|(at, _)| at.elapsed() < BEHIND);
                    for (at, bundle) in &seen {
                        if at.elapsed() >= BEHIND {
                            continue;
                        }
                        let shaken = shakes(*replica, bundle).await;
                        shaken.with_context(|| {
                            format!("{replica}, with a bundle of {:?} ago", at.elapsed())
                        })?;
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { done, task: AbortOnDropHandle::new(task) }
    }

    async fn end(self) -> Result<u64> {
        if self.task.is_finished() {
            self.task.await??;
            bail!("the handshakes ended");
        }
        Ok(self.done.load(Ordering::Relaxed))
    }
}

/// Waits until another authority signs than this one, and says which.
async fn rotated(stage: &Stage, from: &[u8]) -> Result<Vec<u8>> {
    let asked = eventually("another authority", Duration::from_secs(40), || async {
        let now = stage.held("tls.crt").await?;
        ensure!(now != from, "still the same");
        Ok(now)
    });
    asked.await
}

async fn leader(replicas: &[&Replica]) -> Result<usize> {
    let asked = eventually("a leader", SOON, || async {
        for (index, replica) in replicas.iter().enumerate() {
            if replica.leads().await? {
                return Ok(index);
            }
        }
        bail!("nobody leads")
    });
    asked.await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_admission_fails_while_authorities_change_and_leaders_end() -> Result<()> {
    let stage = Stage::start(RBAC).await?;
    let balancer = Balancer::start().await?;
    let a = stage.replica(balancer.address(), &SHORT)?;
    let b = stage.replica(balancer.address(), &SHORT)?;
    stage.register(balancer.address()).await?;
    a.ready().await?;
    b.ready().await?;
    // Both serve, one writes.
    let (mut dies, mut stays) = if leader(&[&a, &b]).await? == 0 { (a, b) } else { (b, a) };
    for replica in [&dies, &stays] {
        shakes(replica.address, &stage.bundles().await?[0]).await?;
    }
    ensure!(!stays.leads().await?, "two lead");
    balancer.to(&[stays.address]);
    stage.admits("warm").await?;
    let begun = Instant::now();
    let load = Load::start(stage.client.clone());
    let shaker = Shaker::start(&stage, vec![stays.address]);

    let first = stage.held("tls.crt").await?;
    let second = rotated(&stage, &first).await?;
    println!("the first rotation after {:?}", begun.elapsed());
    // The leader dies without a word, and comes back as another. Nobody was calling it.
    dies.plane.process().kill()?;
    leader(&[&stays]).await?;
    println!("the other leads after {:?}", begun.elapsed());
    dies.plane.restart()?;
    dies.ready().await?;
    // The one that serves, and leads now, ends in good order: the calls go to the one that came back.
    let shaken = shaker.end().await?;
    let shaker = Shaker::start(&stage, vec![dies.address]);
    balancer.to(&[dies.address]);
    stays.plane.stop(SOON)?;
    println!("the second leader has ended after {:?}", begun.elapsed());
    let third = rotated(&stage, &second).await?;
    println!("the second rotation after {:?}", begun.elapsed());
    ensure!(third != first);
    tokio::time::sleep(OVERLAP).await;
    let created = load.end().await?;
    let shaken = shaken + shaker.end().await?;
    let rate = f64::from(u32::try_from(created)?) / begun.elapsed().as_secs_f64();
    println!("{created} pods, {rate:.0} a second, none refused; {shaken} handshakes, none failed");
    ensure!(created > 300 && shaken > 100, "{created} pods and {shaken} handshakes");
    Ok(())
}
