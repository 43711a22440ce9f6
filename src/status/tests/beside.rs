//! The services over the wire, beside the discovery services of a real server.

use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use envoy_types::pb::envoy::service::status::v3::client_status_discovery_service_client::ClientStatusDiscoveryServiceClient as Client;
use envoy_types::pb::envoy::service::status::v3::{ClientStatusRequest, ConfigStatus};
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};
use http::uri::PathAndQuery;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request as Asked, Streaming};
use tonic_prost::ProstCodec;

use super::world::{NODE, snapshot};
use crate::status::health::{Request, Response, Verdict};
use crate::status::{SERVICES, Serving, reflection, services};
use crate::xds::{Kind, Listener, Server, Store};

struct Running {
    store: Store,
    serving: Serving,
    channel: Channel,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start() -> Running {
    let (store, serving) = (Store::default(), Serving::default());
    let server = Server::new(&store, "aether/test", Arc::new(|_: &str| Ok(())));
    let beside = services(server.clients(), store.subscribe(), &serving);
    let server = server.beside(beside);
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = format!("http://{}", listener.address().unwrap());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(vec![listener], async {
        let _ = stopped.await;
    }));
    let channel = Endpoint::new(address).unwrap().connect().await.unwrap();
    Running { store, serving, channel, stop, task }
}

impl Running {
    async fn check(&self, service: &str) -> Result<Verdict, Code> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let request = Asked::new(Request { service: service.into() });
        let path = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
        let codec = ProstCodec::<Request, Response>::default();
        let answer = grpc.unary(request, path, codec).await;
        answer.map(|answer| answer.get_ref().status()).map_err(|status| status.code())
    }

    async fn watch(&self, service: &str) -> Streaming<Response> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let request = Asked::new(Request { service: service.into() });
        let path = PathAndQuery::from_static("/grpc.health.v1.Health/Watch");
        let codec = ProstCodec::<Request, Response>::default();
        grpc.server_streaming(request, path, codec).await.unwrap().into_inner()
    }
}

async fn next(stream: &mut Streaming<Response>) -> Result<Verdict, Code> {
    let next = tokio::time::timeout(Duration::from_secs(5), stream.message()).await;
    let next = next.expect("within 5 s").map_err(|status| status.code())?;
    Ok(next.expect("more").status())
}

#[tokio::test]
async fn s32_health_is_that_of_the_server_for_every_service_that_there_is() {
    let running = start().await;
    let mut watch = running.watch("").await;
    let mut unknown = running.watch("no.such.Service").await;
    assert_eq!(next(&mut watch).await, Ok(Verdict::NotServing));
    assert_eq!(next(&mut unknown).await, Ok(Verdict::ServiceUnknown));
    running.serving.set(true);
    assert_eq!(next(&mut watch).await, Ok(Verdict::Serving));
    for service in SERVICES.into_iter().chain([""]) {
        assert_eq!(running.check(service).await, Ok(Verdict::Serving), "{service}");
    }
    assert_eq!(running.check("no.such.Service").await, Err(Code::NotFound));
    running.serving.set(false);
    assert_eq!(next(&mut watch).await, Ok(Verdict::NotServing));
    // Whoever watches does not keep the server from its end.
    running.stop.send(()).unwrap();
    assert_eq!(next(&mut watch).await, Err(Code::Unavailable));
    assert_eq!(next(&mut unknown).await, Err(Code::Unavailable));
    let ended = tokio::time::timeout(Duration::from_secs(4), running.task).await;
    ended.expect("before connections are cut").unwrap();
}

#[tokio::test]
async fn s32_both_versions_of_reflection_answer_each_question_in_turn() {
    let running = start().await;
    for version in ["v1", "v1alpha"] {
        let mut grpc = Grpc::new(running.channel.clone());
        grpc.ready().await.unwrap();
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let path = PathAndQuery::try_from(path).unwrap();
        let codec = ProstCodec::<reflection::Request, reflection::Response>::default();
        let (say, requests) = tokio::sync::mpsc::channel(4);
        for name in ["nothing", "envoy.config.cluster.v3.Cluster"] {
            let question = Some(reflection::Question::Symbol(name.into()));
            say.send(reflection::Request { host: String::new(), question }).await.unwrap();
        }
        let requests = Asked::new(ReceiverStream::new(requests));
        let mut answers = grpc.streaming(requests, path, codec).await.unwrap().into_inner();
        let first = answers.message().await.unwrap().unwrap().answer.unwrap();
        assert!(matches!(first, reflection::Answer::Error(_)), "{first:?}");
        let second = answers.message().await.unwrap().unwrap().answer.unwrap();
        assert!(matches!(second, reflection::Answer::Files(_)), "{second:?}");
    }
}

#[tokio::test]
async fn s31_both_methods_of_csds_tell_of_the_clients_that_are_asked_for() {
    let running = start().await;
    running.store.publish(snapshot());
    let mut discovery = Ads::new(running.channel.clone());
    let node =
        envoy_types::pb::envoy::config::core::v3::Node { id: NODE.into(), ..Default::default() };
    let request = DiscoveryRequest {
        node: Some(node),
        type_url: Kind::Cluster.type_url().into(),
        ..DiscoveryRequest::default()
    };
    let requests =
        futures::StreamExt::chain(futures::stream::iter([request]), futures::stream::pending());
    let mut stream = discovery.stream_aggregated_resources(requests).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().resources.len(), 2);

    let by = |id: &str| {
        let match_pattern = Some(MatchPattern::Exact(id.into()));
        let node_id = Some(StringMatcher { ignore_case: false, match_pattern });
        let node_matchers = vec![NodeMatcher { node_id, node_metadatas: Vec::new() }];
        ClientStatusRequest { node_matchers, ..ClientStatusRequest::default() }
    };
    let mut client = Client::new(running.channel.clone());
    let fetched = client.fetch_client_status(by(NODE)).await.unwrap().into_inner();
    let [config] = fetched.config.as_slice() else { panic!("{fetched:?}") };
    let names: Vec<_> =
        config.generic_xds_configs.iter().map(|c| (&*c.name, c.config_status())).collect();
    assert_eq!(names, [("a", ConfigStatus::Stale), ("b", ConfigStatus::Stale)]);
    let nobody = client.fetch_client_status(by("pod/a/b")).await.unwrap().into_inner();
    assert!(nobody.config.is_empty());
    let requests = futures::stream::iter([by(NODE), by("pod/a/b")]);
    let mut answers = client.stream_client_status(requests).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap(), fetched);
    assert_eq!(answers.message().await.unwrap().unwrap(), nobody);
    assert_eq!(answers.message().await.unwrap(), None);
}
