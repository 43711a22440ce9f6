//! One stream: it asks for clusters and listeners, then for what these name, and acknowledges everything.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use prost::Message as _;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use super::messages::Response;

const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const TYPES: [(&str, &str); 5] = [
    ("cluster", "cluster.v3.Cluster"),
    ("endpoint", "endpoint.v3.ClusterLoadAssignment"),
    ("listener", "listener.v3.Listener"),
    ("route", "route.v3.RouteConfiguration"),
    ("virtual host", "route.v3.VirtualHost"),
];

/// What a stream tells.
#[derive(Debug)]
pub struct Told {
    /// Which stream.
    pub stream: usize,
    /// The type of the response.
    pub kind: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
    /// When it came.
    pub at: Instant,
    /// Whether the stream has all that it asked for.
    pub complete: bool,
}

/// Versions by name.
type Versions = BTreeMap<Arc<str>, Arc<str>>;

/// What an Envoy keeps when its stream is gone.
#[derive(Debug, Default)]
pub struct Held {
    resources: BTreeMap<&'static str, Versions>,
    /// Names of endpoints that were asked for and have not come.
    awaited: BTreeSet<Arc<str>>,
}

/// Strings that thousands of streams hold alike.
#[derive(Debug, Default)]
pub struct Shared(std::sync::Mutex<BTreeSet<Arc<str>>>);

impl Shared {
    fn get(&self, text: String) -> Arc<str> {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = all.get(&*text) {
            return known.clone();
        }
        let fresh: Arc<str> = text.into();
        all.insert(fresh.clone());
        fresh
    }
}

/// A stream of one pod.
pub struct Stream {
    /// Its number, which is that of its pod.
    pub number: usize,
    /// Where the server is.
    pub server: SocketAddr,
    /// Strings that all streams share.
    pub shared: Arc<Shared>,
    /// Hears of every response.
    pub tell: UnboundedSender<Told>,
}

impl Stream {
    /// Connects and goes on until the server ends the stream. What is held already is said to be.
    pub async fn run(&self, held: &mut Held) -> Result<()> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.server))?
            .initial_stream_window_size(16 << 20)
            .initial_connection_window_size(24 << 20)
            .connect_timeout(Duration::from_mins(1));
        let mut grpc = tonic::client::Grpc::new(endpoint.connect().await?)
            .max_decoding_message_size(256 << 20);
        grpc.ready().await?;
        let (say, hear) = mpsc::unbounded_channel();
        self.begin(held, &say)?;
        let codec = ProstCodec::<DeltaDiscoveryRequest, Response>::default();
        let path = PathAndQuery::from_static(METHOD);
        let request = tonic::Request::new(UnboundedReceiverStream::new(hear));
        let mut answers = grpc.streaming(request, path, codec).await?.into_inner();
        while let Some(answer) = answers.message().await? {
            let (at, bytes) = (Instant::now(), answer.encoded_len());
            let kind = kind(&answer.type_url).context("a type that nobody asked for")?;
            self.take(held, kind, answer, &say)?;
            let complete = held.awaited.is_empty()
                && TYPES.iter().all(|(kind, _)| held.resources.contains_key(kind));
            let told = Told { stream: self.number, kind, bytes, at, complete };
            if self.tell.send(told).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The first requests.
    fn begin(&self, held: &Held, say: &UnboundedSender<DeltaDiscoveryRequest>) -> Result<()> {
        let id = format!("pod/team-{}/pod-{}", self.number % 50, self.number);
        let mut node = Some(Node { id, ..Node::default() });
        for (kind, _) in TYPES {
            let wildcard = matches!(kind, "cluster" | "listener");
            let Some(versions) = held.resources.get(kind) else {
                if wildcard {
                    say.send(DeltaDiscoveryRequest {
                        node: node.take(),
                        type_url: url(kind),
                        ..Default::default()
                    })?;
                }
                continue;
            };
            let named = || versions.keys().map(ToString::to_string).collect();
            say.send(DeltaDiscoveryRequest {
                node: node.take(),
                type_url: url(kind),
                resource_names_subscribe: match kind {
                    _ if wildcard => Vec::new(),
                    "virtual host" => vec!["*".to_owned()],
                    _ => named(),
                },
                initial_resource_versions: versions
                    .iter()
                    .map(|(name, version)| (name.to_string(), version.to_string()))
                    .collect(),
                ..Default::default()
            })?;
        }
        Ok(())
    }

    /// Takes a response: notes what came, acknowledges, and asks for what it names.
    fn take(
        &self,
        held: &mut Held,
        kind: &'static str,
        answer: Response,
        say: &UnboundedSender<DeltaDiscoveryRequest>,
    ) -> Result<()> {
        let first = !held.resources.contains_key(kind);
        let known = held.resources.entry(kind).or_default();
        let mut fresh = Vec::new();
        for resource in answer.resources {
            if kind == "cluster" && !known.contains_key(&*resource.name) {
                fresh.extend(resource.endpoints());
            }
            let name = self.shared.get(resource.name);
            if kind == "endpoint" {
                held.awaited.remove(&name);
            }
            known.insert(name, self.shared.get(resource.version));
        }
        for name in answer.removed_resources {
            known.remove(&*name);
        }
        let next = match kind {
            "cluster" => {
                held.awaited.extend(fresh.iter().map(|name| self.shared.get(name.clone())));
                ("endpoint", fresh)
            }
            "listener" if first => ("route", vec![format!("cap_http.team-{}", self.number % 50)]),
            "route" if first => ("virtual host", vec!["*".to_owned()]),
            _ => ("", Vec::new()),
        };
        say.send(DeltaDiscoveryRequest {
            type_url: answer.type_url,
            response_nonce: answer.nonce,
            ..Default::default()
        })?;
        if !next.1.is_empty() {
            say.send(DeltaDiscoveryRequest {
                type_url: url(next.0),
                resource_names_subscribe: next.1,
                ..Default::default()
            })?;
        }
        Ok(())
    }
}

fn url(kind: &str) -> String {
    let name = TYPES.iter().find(|(of, _)| *of == kind).map_or("", |(_, name)| name);
    format!("type.googleapis.com/envoy.config.{name}")
}

fn kind(url_of: &str) -> Option<&'static str> {
    TYPES.iter().map(|(kind, _)| *kind).find(|kind| url(kind) == url_of)
}
