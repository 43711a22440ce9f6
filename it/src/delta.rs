//! A delta stream as an Envoy's, without an Envoy: it subscribes to all that a sidecar would, acknowledges everything,
//! and counts what it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{HealthStatus, Node};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Endpoint;

/// The types that a sidecar asks for, by the last word of their URL.
const TYPES: [&str; 5] = ["cluster", "endpoint", "listener", "route", "virtual host"];

/// A stream that is open. Dropped, it is closed.
#[derive(Debug)]
pub struct Stream {
    held: watch::Receiver<Held>,
    _task: AbortOnDropHandle<()>,
}

/// A resource that came.
#[derive(Debug)]
pub struct Arrival {
    /// Its type.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When.
    pub at: Instant,
}

/// What a stream has been sent.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// Each resource by type (`cluster`, `endpoint`, `listener`, `route`, `virtual host`) and name: its version and
    /// its bytes.
    pub resources: BTreeMap<(&'static str, String), (String, Vec<u8>)>,
    /// How many responses came.
    pub responses: usize,
    /// When the last one came.
    pub last: Option<Instant>,
    /// Why the stream ended, once it has.
    pub ended: Option<String>,
}

impl Held {
    /// The names of a type.
    pub fn names(&self, of: &str) -> BTreeSet<&str> {
        self.resources.keys().filter(|(kind, _)| *kind == of).map(|(_, name)| &**name).collect()
    }

    /// The endpoints of an assignment (`ns/name:port`), in words.
    pub fn endpoints(&self, assignment: &str) -> Option<Vec<String>> {
        endpoints(self.bytes("endpoint", assignment)?)
    }

    /// The bytes of a resource.
    pub fn bytes(&self, of: &str, name: &str) -> Option<&[u8]> {
        let mut all = self.resources.iter();
        all.find(|((kind, held), _)| *kind == of && held == name).map(|(_, (_, bytes))| &**bytes)
    }
}

/// The endpoints of an assignment in words: address, port, health, weight, zone and priority of each.
pub fn endpoints(assignment: &[u8]) -> Option<Vec<String>> {
    let assignment = ClusterLoadAssignment::decode(assignment).ok()?;
    let mut all = Vec::new();
    for locality in &assignment.endpoints {
        let zone = locality.locality.as_ref().map_or("", |locality| &locality.zone);
        for endpoint in &locality.lb_endpoints {
            let Some(HostIdentifier::Endpoint(host)) = &endpoint.host_identifier else { continue };
            let Address::SocketAddress(socket) = host.address.as_ref()?.address.as_ref()? else {
                continue;
            };
            let port = match socket.port_specifier {
                Some(PortSpecifier::PortValue(port)) => port,
                _ => 0,
            };
            let health = HealthStatus::try_from(endpoint.health_status).ok()?.as_str_name();
            let weight = endpoint.load_balancing_weight.as_ref().map_or(1, |weight| weight.value);
            all.push(format!(
                "{}:{port} {health} weight {weight} zone {zone:?} priority {}",
                socket.address, locality.priority
            ));
        }
    }
    Some(all)
}

impl Stream {
    /// Opens one over the Unix socket of a server, as the Envoy of this node id.
    pub async fn open(socket: &Path, node: &str) -> Result<Self> {
        let (tap, _) = mpsc::unbounded_channel();
        Self::open_tapped(socket, node, tap).await
    }

    /// The same, and says of each resource when it came.
    pub async fn open_tapped(
        socket: &Path,
        node: &str,
        tap: mpsc::UnboundedSender<Arrival>,
    ) -> Result<Self> {
        let path: PathBuf = socket.to_owned();
        let connect = tower::service_fn(move |_| {
            let path = path.clone();
            async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
        });
        let channel = Endpoint::from_static("http://unix").connect_with_connector(connect).await?;
        // Endpoints of thousands of clusters come in one response.
        let mut client = Ads::new(channel).max_decoding_message_size(64 << 20);
        let (say, hear) = mpsc::unbounded_channel();
        let namespace = node.split('/').nth(1).context("a node id of the form pod/NS/NAME")?;
        let table = format!("cap_http.{namespace}");
        let node = Node { id: node.to_owned(), ..Node::default() };
        for kind in ["cluster", "listener"] {
            let first = DeltaDiscoveryRequest {
                node: Some(node.clone()),
                type_url: url(kind),
                ..Default::default()
            };
            say.send(first)?;
        }
        let answer = client.delta_aggregated_resources(UnboundedReceiverStream::new(hear));
        let mut answers = answer.await?.into_inner();
        let (told, held) = watch::channel(Held::default());
        let task = tokio::spawn(async move {
            let mut asked = BTreeSet::new();
            loop {
                let why = match answers.message().await {
                    Ok(Some(answer)) => {
                        told.send_modify(|held| take(held, &answer, &tap));
                        if reply(&say, &answer, &table, &mut asked).is_ok() {
                            continue;
                        }
                        "our direction is closed".to_owned()
                    }
                    Ok(None) => "the server ended it".to_owned(),
                    Err(status) => status.to_string(),
                };
                told.send_modify(|held| held.ended = Some(why));
                return;
            }
        });
        Ok(Self { held, _task: AbortOnDropHandle::new(task) })
    }

    /// What it holds now.
    pub fn now(&self) -> Held {
        self.held.borrow().clone()
    }

    /// How many responses came so far.
    pub fn responses(&self) -> usize {
        self.held.borrow().responses
    }

    /// Waits until what it holds is as wanted, and says when the last response came.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl FnMut(&Held) -> bool,
    ) -> Result<Instant> {
        let mut held = self.held.clone();
        if let Ok(held) = tokio::time::timeout(limit, held.wait_for(wanted)).await {
            return Ok(held?.last.unwrap_or_else(Instant::now));
        }
        let now = self.now();
        bail!(
            "{what}: not within {limit:?}; after {} responses it holds {:?} (ended: {:?})",
            now.responses,
            now.resources.keys().collect::<Vec<_>>(),
            now.ended
        )
    }

    /// Waits until nothing has come for a while, and says how many responses there were.
    pub async fn quiet(&self, pause: Duration, limit: Duration) -> Result<usize> {
        let start = Instant::now();
        let mut held = self.held.clone();
        while start.elapsed() < limit {
            held.borrow_and_update();
            if tokio::time::timeout(pause, held.changed()).await.is_err() {
                return Ok(self.responses());
            }
        }
        bail!("responses still come after {limit:?}: {}", self.responses())
    }
}

/// The type's URL.
fn url(kind: &str) -> String {
    let name = match kind {
        "cluster" => "cluster.v3.Cluster",
        "endpoint" => "endpoint.v3.ClusterLoadAssignment",
        "listener" => "listener.v3.Listener",
        "route" => "route.v3.RouteConfiguration",
        _ => "route.v3.VirtualHost",
    };
    format!("type.googleapis.com/envoy.config.{name}")
}

fn kind(url_of: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|kind| url(kind) == url_of)
}

fn take(held: &mut Held, answer: &DeltaDiscoveryResponse, tap: &mpsc::UnboundedSender<Arrival>) {
    let Some(kind) = kind(&answer.type_url) else { return };
    let at = Instant::now();
    for resource in &answer.resources {
        let bytes = resource.resource.as_ref().map(|any| any.value.clone()).unwrap_or_default();
        // Where nobody listens, nobody needs to know.
        let (name, copy) = (resource.name.clone(), bytes.clone());
        let _ = tap.send(Arrival { kind, name, bytes: copy, at });
        held.resources.insert((kind, resource.name.clone()), (resource.version.clone(), bytes));
    }
    for name in &answer.removed_resources {
        held.resources.remove(&(kind, name.clone()));
    }
    held.responses += 1;
    held.last = Some(at);
}

/// Acknowledges, and subscribes to what the new clusters and listeners name.
fn reply(
    say: &mpsc::UnboundedSender<DeltaDiscoveryRequest>,
    answer: &DeltaDiscoveryResponse,
    table: &str,
    asked: &mut BTreeSet<(&'static str, String)>,
) -> Result<()> {
    say.send(DeltaDiscoveryRequest {
        type_url: answer.type_url.clone(),
        response_nonce: answer.nonce.clone(),
        ..Default::default()
    })?;
    let mut subscribe = |of: &'static str, names: Vec<String>| -> Result<()> {
        let fresh: Vec<_> =
            names.into_iter().filter(|name| asked.insert((of, name.clone()))).collect();
        if !fresh.is_empty() {
            say.send(DeltaDiscoveryRequest {
                type_url: url(of),
                resource_names_subscribe: fresh,
                ..Default::default()
            })?;
        }
        Ok(())
    };
    match kind(&answer.type_url) {
        Some("cluster") => {
            let clusters = answer.resources.iter().filter_map(|resource| {
                let cluster = Cluster::decode(&*resource.resource.as_ref()?.value).ok()?;
                Some(cluster.eds_cluster_config?.service_name)
            });
            subscribe("endpoint", clusters.collect())
        }
        Some("listener") => subscribe("route", vec![table.to_owned()]),
        Some("route") => subscribe("virtual host", vec!["*".to_owned()]),
        _ => Ok(()),
    }
}
