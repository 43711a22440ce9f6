//! Random interleavings of changes, subscriptions, answers, refusals and disconnects on real
//! connections: in the end every client has what the server has, and nothing is left of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use envoy_types::pb::envoy::service as pb;
use envoy_types::pb::google::rpc::Status as Rpc;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use pb::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use tokio::sync::mpsc::UnboundedSender;
use tonic::Streaming;

use super::super::{Kind, Protocol, Request, Resource, Response, Wants};
use super::model::Model;
use super::served::{Served, node};
use super::wire::wire;
use super::worlds::Worlds;
use crate::random::Random;

/// Clients of a run at a time.
const CLIENTS: usize = 3;
/// What happens in a run, besides its end.
const STEPS: usize = 40;
/// How long a client may take at the end to have it all; where one waits for another type, it waits
/// for seconds.
const SETTLED: Duration = Duration::from_secs(20);

/// How many runs on each sort of socket.
fn runs() -> u64 {
    if std::env::var_os("AETHER_IT_LONG").is_some() { 5_000 } else { 40 }
}

/// Both directions of a stream.
enum Line {
    Sotw(UnboundedSender<DiscoveryRequest>, Streaming<DiscoveryResponse>),
    Delta(UnboundedSender<DeltaDiscoveryRequest>, Streaming<DeltaDiscoveryResponse>),
}

impl Line {
    async fn open(served: &Served, protocol: Protocol) -> Self {
        let mut client = Ads::new(served.channel().await);
        match protocol {
            Protocol::Sotw => {
                let (say, requests) = wire();
                let hear = client.stream_aggregated_resources(requests).await.unwrap();
                Self::Sotw(say, hear.into_inner())
            }
            Protocol::Delta => {
                let (say, requests) = wire();
                let hear = client.delta_aggregated_resources(requests).await.unwrap();
                Self::Delta(say, hear.into_inner())
            }
        }
    }

    fn say(&self, request: Request) {
        let (node, type_url) = (request.node.map(|_| node()), request.type_url);
        let response_nonce = request.nonce;
        let error_detail =
            request.error.map(|message| Rpc { code: 13, message, ..Default::default() });
        match (self, request.wants) {
            (Self::Sotw(say, _), Wants::All(names)) => {
                let resource_names = names.iter().map(Into::into).collect();
                let request = DiscoveryRequest {
                    node,
                    type_url,
                    response_nonce,
                    error_detail,
                    resource_names,
                    ..Default::default()
                };
                say.send(request).unwrap();
            }
            (Self::Delta(say, _), Wants::Change { subscribe, unsubscribe, initial }) => {
                let held = initial.iter().map(|(name, version)| (name.into(), version.into()));
                let request = DeltaDiscoveryRequest {
                    node,
                    type_url,
                    response_nonce,
                    error_detail,
                    resource_names_subscribe: subscribe.iter().map(Into::into).collect(),
                    resource_names_unsubscribe: unsubscribe.iter().map(Into::into).collect(),
                    initial_resource_versions: held.collect(),
                    ..Default::default()
                };
                say.send(request).unwrap();
            }
            _ => panic!("a request of the other protocol"),
        }
    }

    /// The next response, if one comes within this time.
    async fn hear(&mut self, limit: Duration) -> Option<Response> {
        let (protocol, type_url, nonce, bodies, removed) = match self {
            Self::Sotw(_, hear) => {
                let heard = tokio::time::timeout(limit, hear.message()).await.ok()?;
                let heard = heard.unwrap().unwrap();
                let bodies: Vec<_> = heard.resources.into_iter().map(|any| (None, any)).collect();
                (Protocol::Sotw, heard.type_url, heard.nonce, bodies, Vec::new())
            }
            Self::Delta(_, hear) => {
                let heard = tokio::time::timeout(limit, hear.message()).await.ok()?;
                let heard = heard.unwrap().unwrap();
                let bodies = heard.resources.into_iter();
                let bodies = bodies.map(|one| (Some(one.name), one.resource.unwrap())).collect();
                (Protocol::Delta, heard.type_url, heard.nonce, bodies, heard.removed_resources)
            }
        };
        let kind = Kind::from_type_url(&type_url).unwrap();
        let resources = bodies.into_iter().map(|(told, any)| {
            assert_eq!(any.type_url, type_url);
            let text = std::str::from_utf8(&any.value).unwrap();
            let (name, _) = text.rsplit_once("name=").unwrap().1.split_once(';').unwrap();
            assert!(told.is_none_or(|told| told == name));
            Resource::new(kind, name, Bytes::copy_from_slice(&any.value), None)
        });
        Some(Response {
            protocol,
            kind: Some(kind),
            type_url: type_url.clone().into(),
            nonce: nonce.parse().unwrap(),
            version: String::new(),
            resources: resources.collect::<Vec<_>>().into(),
            removed: removed.into_iter().map(Arc::from).collect(),
        })
    }
}

/// A strict client on a real stream.
struct Client {
    model: Model,
    line: Line,
}

impl Client {
    async fn open(served: &Served, protocol: Protocol, strict: bool) -> Self {
        let mut model = Model::new(protocol, strict);
        model.snapshot = served.store.current();
        model.begin();
        Self { model, line: Line::open(served, protocol).await }
    }

    /// Its connection is gone, and it makes another.
    async fn reconnect(&mut self, served: &Served) {
        self.line = Line::open(served, self.model.protocol).await;
        self.model.cut();
        self.model.begin();
    }

    fn say(&mut self) {
        if let Some(request) = self.model.up.pop_front() {
            self.line.say(request);
        }
    }

    /// Takes in a response if one comes; whether one did.
    async fn hear(&mut self, limit: Duration, refuse: bool) -> bool {
        let Some(response) = self.line.hear(limit).await else { return false };
        self.model.down.push_back(response);
        self.model.receive(refuse);
        true
    }

    /// Takes in and acknowledges all that comes until it has what the server has.
    async fn settle(&mut self, worlds: &Worlds, told: &str) {
        let begun = Instant::now();
        loop {
            while !self.model.up.is_empty() {
                self.say();
            }
            if self.hear(Duration::from_millis(10), false).await || !self.model.up.is_empty() {
                continue;
            }
            let Some(unlike) = self.model.unlike(worlds) else { return };
            let protocol = self.model.protocol;
            assert!(begun.elapsed() < SETTLED, "{told}, {protocol:?}: {unlike:?}");
        }
    }
}

/// Writes the name of every resource into its body, since state-of-the-world tells no names.
fn publish(worlds: &mut Worlds, served: &Served) {
    for kind in Kind::ALL {
        let entries = worlds.world.entries.entry(kind).or_default();
        let names: Vec<_> = entries.keys().cloned().collect();
        for name in names {
            let body = worlds.world.body(kind, &name);
            if !body.contains(";name=") {
                let body = format!("{body};name={name};");
                match kind {
                    Kind::Cluster => worlds.world.cluster(&name, &body),
                    _ => worlds.world.set(kind, &name, &body),
                };
            }
        }
    }
    worlds.world.publish(&served.store);
}

async fn run(worlds: &mut Worlds, served: &Served, seed: u64, told: &str) {
    let mut random = Random::new(seed);
    // Where nothing is refused and nothing odd is wanted, no set may dangle on the way.
    let chaos = seed.is_multiple_of(2);
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        let protocol = if n.is_multiple_of(2) { Protocol::Delta } else { Protocol::Sotw };
        let strict = !chaos && protocol == Protocol::Delta;
        let mut client = Client::open(served, protocol, strict).await;
        client.model.warm = !chaos;
        clients.push(client);
    }
    for _ in 0..STEPS {
        let at = usize::try_from(random.below(CLIENTS as u64)).unwrap();
        let client = &mut clients[at];
        match random.below(10) {
            0 => {
                worlds.change(&mut random);
                publish(worlds, served);
                for client in &mut clients {
                    client.model.snapshot = served.store.current();
                }
            }
            1..=4 => {
                let refuse = chaos && random.below(6) == 0;
                client.hear(Duration::from_millis(1), refuse).await;
            }
            5..=8 => client.say(),
            _ if random.below(4) == 0 => client.reconnect(served).await,
            _ if chaos => client.model.toggle(&mut random),
            _ => tokio::task::yield_now().await,
        }
    }
    worlds.touch();
    publish(worlds, served);
    for client in &mut clients {
        client.model.snapshot = served.store.current();
        client.settle(worlds, told).await;
    }
}

async fn all(unix: bool) {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut worlds = Worlds::default();
    worlds.change(&mut Random::new(1));
    let served = Served::start(&mut worlds.world, unix).await;
    publish(&mut worlds, &served);
    let one = std::env::var("AETHER_XDS_SEED").ok().and_then(|n| n.parse().ok());
    for seed in one.map_or(0..runs(), |seed| seed..seed + 1) {
        run(&mut worlds, &served, seed, &format!("AETHER_XDS_SEED={seed}, unix: {unix}")).await;
    }
    served.quiet().await;
    served.stop().await;
    let deadline = Instant::now() + Duration::from_secs(5);
    while tasks() > before {
        assert!(Instant::now() < deadline, "{} tasks, and {before} before", tasks());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_s19_s25_any_interleaving_on_tcp_converges_and_leaves_nothing() {
    all(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_s19_s25_any_interleaving_on_a_unix_socket_converges_and_leaves_nothing() {
    all(true).await;
}
