//! Statement 31: what each client has is told from the state of its stream, and is gone with it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
};
use envoy_types::pb::google::rpc::Status;
use tokio::sync::mpsc::UnboundedSender;
use tonic::Streaming;

use super::super::clients::{Ledger, beginning};
use super::super::{
    Config, Delivery, Kind, KindReport, Progress, Protocol, Reason, Refusal, Report, Sent, Standing,
};
use super::served::{Served, node};
use super::wire::{ask, subscribe, wire};
use super::world::{CDS, EDS, LDS, NODE, World};

fn world() -> World {
    let mut world = World::default();
    world.service("a", "1").service("b", "1").set(LDS, "l", "1");
    world
}

/// A delta stream.
struct Stream {
    say: UnboundedSender<DeltaDiscoveryRequest>,
    hear: Streaming<DeltaDiscoveryResponse>,
}

impl Stream {
    async fn open(served: &Served) -> Self {
        let (say, requests) = wire();
        say.send(subscribe(CDS, &[])).unwrap();
        let mut client = Ads::new(served.channel().await);
        let hear = client.delta_aggregated_resources(requests).await.unwrap().into_inner();
        Self { say, hear }
    }

    async fn next(&mut self) -> DeltaDiscoveryResponse {
        let next = tokio::time::timeout(Duration::from_secs(5), self.hear.message());
        next.await.expect("within 5 s").unwrap().unwrap()
    }

    fn answer(&self, response: &DeltaDiscoveryResponse, error: Option<&str>) {
        let error_detail = error.map(|words| Status { message: words.into(), ..Status::default() });
        let request = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail,
            ..DeltaDiscoveryRequest::default()
        };
        self.say.send(request).unwrap();
    }
}

/// Asks until the reports are as they should be.
async fn until(served: &Served, right: impl Fn(&[Report]) -> bool) -> Vec<Report> {
    let newest = served.store.current();
    for _ in 0..500 {
        let reports = served.clients.reports(newest.as_ref());
        if right(&reports) {
            return reports;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", served.clients.reports(newest.as_ref()));
}

fn of(reports: &[Report], kind: Kind) -> Option<&KindReport> {
    let [one] = reports else { return None };
    one.kinds.iter().find(|of| of.kind == kind)
}

fn progress(kind: Kind, progress: Progress) -> impl Fn(&[Report]) -> bool {
    move |reports| of(reports, kind).is_some_and(|of| of.progress == progress)
}

/// The deliveries of the only stream's resources of a type.
fn deliveries(served: &Served, kind: Kind) -> Vec<(String, Delivery)> {
    let newest = served.store.current();
    let configs: Vec<Config> =
        served.clients.configs(newest.as_ref(), |id| id == NODE).flat_map(|(_, all)| all).collect();
    let configs = configs.into_iter().filter(|config| config.kind == kind);
    configs.map(|config| (config.name.to_string(), config.delivery)).collect()
}

fn told(all: &[(&str, Delivery)]) -> Vec<(String, Delivery)> {
    all.iter().map(|(name, fate)| ((*name).to_owned(), *fate)).collect()
}

#[tokio::test]
async fn s31_what_was_sent_accepted_refused_and_not_sent_is_told_by_resource() {
    let mut world = world();
    let served = Served::start(&mut world, false).await;
    let mut stream = Stream::open(&served).await;
    let clusters = stream.next().await;
    let reports = until(&served, progress(CDS, Progress::Pending)).await;
    let report = of(&reports, CDS).unwrap();
    assert_eq!((report.wildcard, report.names, report.unanswered), (true, 0, 1));
    assert_eq!(report.sent.map(|sent| (sent.resources, sent.removed)), Some((2, 0)));
    assert_eq!(
        deliveries(&served, CDS),
        told(&[("a", Delivery::Unanswered), ("b", Delivery::Unanswered)])
    );

    stream.answer(&clusters, None);
    let reports = until(&served, progress(CDS, Progress::Synced)).await;
    assert_eq!(of(&reports, CDS).unwrap().accepted.map(|(nonce, _)| nonce), Some(1));
    assert_eq!(reports[0].standing, Some(Standing::Served));
    assert_eq!(deliveries(&served, CDS), told(&[("a", Delivery::Synced), ("b", Delivery::Synced)]));

    // One that is absent is told to be, and is synced so.
    stream.say.send(subscribe(EDS, &["a", "x"])).unwrap();
    let endpoints = stream.next().await;
    stream.answer(&endpoints, None);
    until(&served, progress(EDS, Progress::Synced)).await;
    assert_eq!(deliveries(&served, EDS), told(&[("a", Delivery::Synced), ("x", Delivery::Synced)]));

    world.cluster("b", "2");
    world.publish(&served.store);
    let changed = stream.next().await;
    stream.answer(&changed, Some("b is wrong"));
    let reports = until(&served, progress(CDS, Progress::Refused)).await;
    let refused = of(&reports, CDS).unwrap().refused.clone().unwrap();
    assert_eq!((&*refused.words, &*refused.names), ("b is wrong", &["b".to_owned()][..]));
    assert_eq!(
        deliveries(&served, CDS),
        told(&[("a", Delivery::Synced), ("b", Delivery::Refused)])
    );

    world.cluster("b", "3");
    world.publish(&served.store);
    let changed = loop {
        let next = stream.next().await;
        if next.type_url == CDS.type_url() {
            break next;
        }
        stream.answer(&next, None);
    };
    stream.answer(&changed, None);
    let reports = until(&served, progress(CDS, Progress::Synced)).await;
    assert!(of(&reports, CDS).unwrap().refused.is_some(), "the last refusal is still told");
    assert_eq!(deliveries(&served, CDS), told(&[("a", Delivery::Synced), ("b", Delivery::Synced)]));
    let reasons: Vec<_> = served.stats.responses.by_reason(CDS).collect();
    let expected = [(Reason::First, 1), (Reason::Change, 2), (Reason::Asked, 0), (Reason::Held, 0)];
    assert_eq!(reasons, expected);
}

#[tokio::test]
async fn s31_a_stream_that_does_not_read_is_told_by_what_it_misses() {
    let mut world = world();
    let served = Served::start(&mut world, false).await;
    let mut stream = Stream::open(&served).await;
    let clusters = stream.next().await;
    stream.answer(&clusters, None);
    until(&served, progress(CDS, Progress::Synced)).await;
    // A snapshot that no stream has heard of, as of one whose client does not read.
    world.cluster("a", "2").remove(CDS, "b").cluster("c", "1");
    let missed = world.snapshot();
    let reports = served.clients.reports(Some(&missed));
    let report = of(&reports, CDS).unwrap();
    assert_eq!((report.progress, report.due), (Progress::Pending, 3));
    assert_eq!(reports[0].generation, Some(missed.generation - 1));
    let configs = served.clients.configs(Some(&missed), |_| true);
    let configs: Vec<_> = configs.flat_map(|(_, configs)| configs).collect();
    let deliveries: Vec<_> =
        configs.iter().map(|c| (&*c.name, c.delivery, c.resource.is_some())).collect();
    let not_sent = |name, exists| (name, Delivery::NotSent, exists);
    assert_eq!(deliveries, [not_sent("a", true), not_sent("b", false), not_sent("c", true)]);
}

#[tokio::test]
async fn s25_s31_streams_of_one_node_are_all_told_and_leave_nothing() {
    let served = Served::start(&mut world(), true).await;
    let first = Stream::open(&served).await;
    until(&served, |reports| reports.len() == 1).await;
    let second = Stream::open(&served).await;
    let reports = until(&served, |reports| {
        reports.len() == 2 && reports.iter().all(|report| report.node.is_some())
    });
    let reports = reports.await;
    assert!(reports.iter().all(|report| report.node.as_deref() == Some(NODE)));
    assert!(reports[0].since <= reports[1].since, "the older one comes first");
    assert!(reports[0].peer.starts_with("unix:pid="), "{}", reports[0].peer);
    drop((first, second));
    until(&served, <[_]>::is_empty).await;
    served.quiet().await;
    assert_eq!((served.clients.count(), served.stats.streams.load(Relaxed)), (0, 0));
}

#[tokio::test]
async fn s31_a_node_that_waits_is_told_to_wait_and_none_is_told_without_a_snapshot() {
    let mut world = world();
    world.without_node = true;
    let served = Served::start(&mut world, false).await;
    let (say, requests) = wire::<DiscoveryRequest>();
    say.send(ask(CDS, &[])).unwrap();
    let mut client = Ads::new(served.channel().await);
    let _hear = client.stream_aggregated_resources(requests).await.unwrap();
    let reports = until(&served, progress(CDS, Progress::Pending)).await;
    assert_eq!(reports[0].standing, Some(Standing::Waiting));
    assert_eq!((reports[0].protocol, reports[0].only), (Protocol::Sotw, None));
    assert_eq!(served.clients.reports(None)[0].standing, None);
    assert_eq!(node().id, NODE);
}

fn sent(nonce: u64) -> Sent {
    Sent { nonce, at: SystemTime::UNIX_EPOCH, resources: 1, removed: 0 }
}

#[test]
fn s31_an_answer_is_that_of_its_nonce_and_in_state_of_the_world_of_all_before_it() {
    for (protocol, left) in [(Protocol::Delta, 2), (Protocol::Sotw, 0)] {
        let mut ledger = Ledger::new(protocol);
        assert!(ledger.sent(CDS, sent(1), None) && !ledger.sent(CDS, sent(2), None));
        assert!(ledger.sent(LDS, sent(3), None));
        assert!(!ledger.sent(CDS, sent(4), None));
        let now = SystemTime::now();
        assert_eq!(ledger.accepted(4, now).map(|(kind, _)| kind), Some(CDS));
        assert_eq!(ledger.account(CDS).unwrap().unanswered(), left);
        assert_eq!(ledger.account(LDS).unwrap().unanswered(), 1, "of its type alone");
        assert!(ledger.accepted(4, now).is_none() && ledger.accepted(9, now).is_none());
    }
}

#[test]
fn s31_what_a_client_says_and_does_not_say_is_bounded() {
    let mut ledger = Ledger::new(Protocol::Delta);
    for nonce in 1..=100 {
        ledger.sent(CDS, sent(nonce), None);
    }
    assert_eq!(ledger.account(CDS).unwrap().unanswered(), 16);
    let names = (0..100).map(|n| n.to_string()).collect();
    let refusal =
        Refusal { kind: CDS, words: "é".repeat(9000), names, generation: 1, repeated: false };
    ledger.refused(100, &refusal, SystemTime::now());
    let refused = ledger.account(CDS).unwrap().refused.clone().unwrap();
    assert_eq!((refused.words.len(), refused.names.len()), (4096, 32));
    for (most, expected) in [(0, ""), (1, ""), (2, "é"), (3, "éa"), (9, "éa")] {
        assert_eq!(beginning("éa", most), expected);
    }
}
