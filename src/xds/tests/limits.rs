//! Every limit from both sides, over real connections.

use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service as pb;
use pb::discovery::v3::DeltaDiscoveryRequest;
use pb::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Ads;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::super::{Denial, Limits};
use super::served::Served;
use super::wire::{subscribe, wire, world};
use super::world::{CDS, EDS};

type Say = UnboundedSender<DeltaDiscoveryRequest>;
type Hear = Streaming<pb::discovery::v3::DeltaDiscoveryResponse>;

async fn limited(limits: Limits) -> Served {
    let limits = Limits { loopback: true, ..limits };
    Served::start_with(&mut world(), false, None, |server| server.limits(limits)).await
}

/// A stream on a connection.
async fn open(channel: Channel) -> Result<(Say, Hear), Status> {
    let (say, requests) = wire();
    let hear = Ads::new(channel).delta_aggregated_resources(requests).await?.into_inner();
    Ok((say, hear))
}

/// A stream that was answered.
async fn answered(channel: Channel) -> Result<(Say, Hear), Status> {
    let (say, mut hear) = open(channel).await?;
    say.send(subscribe(CDS, &[])).unwrap();
    hear.message().await?.unwrap();
    Ok((say, hear))
}

#[tokio::test]
async fn streams_of_a_peer() {
    let served = limited(Limits { peer_streams: 2, ..Limits::default() }).await;
    let one = answered(served.channel().await).await.unwrap();
    let two = answered(served.channel().await).await.unwrap();
    let refused = answered(served.channel().await).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("2 streams"), "{refused}");
    assert_eq!(served.stats.refused.get(Denial::PeerStreams), 1);
    drop(two);
    let begun = Instant::now();
    while answered(served.channel().await).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    drop(one);
    served.quiet().await;
}

#[tokio::test]
async fn connections_of_a_peer_and_in_all() {
    for (limits, reason, words) in [
        (
            Limits { peer_connections: 2, ..Limits::default() },
            Denial::PeerConnections,
            "this address has 2 connections",
        ),
        (
            Limits { connections: 2, ..Limits::default() },
            Denial::Connections,
            "the server has 2 connections",
        ),
    ] {
        let served = limited(limits).await;
        let one = answered(served.channel().await).await.unwrap();
        let two = answered(served.channel().await).await.unwrap();
        let mut third = TcpStream::connect(served.address()).await.unwrap();
        let mut said = Vec::new();
        third.read_to_end(&mut said).await.unwrap();
        assert!(String::from_utf8_lossy(&said).contains(words), "{said:?}");
        assert_eq!(served.stats.refused.get(reason), 1);
        assert!(answered(served.channel().await).await.is_err());
        drop((one, two));
        served.quiet().await;
        answered(served.channel().await).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_has_a_stream_soon_and_a_stream_a_request() {
    let first = Duration::from_millis(300);
    let served = limited(Limits { first, ..Limits::default() }).await;
    let mut silent = TcpStream::connect(served.address()).await.unwrap();
    let mut said = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(5), silent.read_to_end(&mut said));
    closed.await.unwrap().unwrap();
    assert_eq!(served.stats.refused.get(Denial::First), 1);

    let (_say, mut hear) = open(served.channel().await).await.unwrap();
    let refused = hear.message().await.unwrap_err();
    assert_eq!(refused.code(), Code::DeadlineExceeded);
    assert!(refused.message().contains("no request came within 300ms"), "{refused}");
    assert_eq!(served.stats.refused.get(Denial::First), 2);

    // Once it has asked, it may be silent.
    let (_say, mut hear) = answered(served.channel().await).await.unwrap();
    let silence = tokio::time::timeout(3 * first, hear.message()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test]
async fn names_in_a_request_on_a_stream_and_of_a_peer() {
    let limits = Limits { names: 10, peer_names: 15, name: 100, ..Limits::default() };
    let served = limited(limits).await;
    let names = |from: usize, to: usize| (from..to).map(|i| format!("n{i}")).collect::<Vec<_>>();
    let ask = |names: Vec<String>| DeltaDiscoveryRequest {
        resource_names_subscribe: names,
        ..subscribe(EDS, &[])
    };
    let told = async |requests: Vec<DeltaDiscoveryRequest>| {
        let (say, mut hear) = open(served.channel().await).await.unwrap();
        let mut last = None;
        for request in requests {
            say.send(request).unwrap();
            last = Some(hear.message().await.map(|answer| answer.unwrap().removed_resources.len()));
        }
        (last.unwrap().map_err(|status| (status.code(), status.message().to_owned())), say, hear)
    };
    let (ten, say, hear) = told(vec![ask(names(0, 10))]).await;
    assert_eq!(ten, Ok(10));
    // Five more for the same peer, and not six.
    assert_eq!(told(vec![ask(names(0, 5))]).await.0, Ok(5));
    let (six, ..) = told(vec![ask(names(0, 6))]).await;
    let (code, words) = six.unwrap_err();
    assert!(code == Code::ResourceExhausted && words.contains("more than 15"), "{words}");
    drop((say, hear));
    served.quiet().await;

    assert_eq!(told(vec![ask(names(0, 5)), ask(names(5, 10))]).await.0, Ok(5));
    for requests in [
        // Eighteen fields may be other ones.
        vec![ask(names(0, 30))],
        vec![ask(names(0, 11))],
        vec![ask(names(0, 5)), ask(names(5, 11))],
    ] {
        served.quiet().await;
        let (code, words) = told(requests).await.0.unwrap_err();
        assert!(code == Code::ResourceExhausted && words.contains("more than 10 names"), "{words}");
    }
    assert_eq!(told(vec![ask(vec!["x".repeat(100)])]).await.0, Ok(1));
    let (code, words) = told(vec![ask(vec!["x".repeat(101)])]).await.0.unwrap_err();
    assert!(code == Code::ResourceExhausted && words.contains("100 bytes"), "{words}");
    assert_eq!(served.stats.refused.get(Denial::Names), 3);
    assert_eq!(served.stats.refused.get(Denial::PeerNames), 1);
    assert_eq!(served.stats.refused.get(Denial::Name), 1);
}

#[tokio::test]
async fn s26_the_size_of_a_request() {
    let served = limited(Limits { request: 1 << 20, ..Limits::default() }).await;
    let ask = |bytes: usize| {
        let names = (0..bytes / 1000).map(|i| format!("{i:0>990}")).collect();
        DeltaDiscoveryRequest { resource_names_subscribe: names, ..subscribe(EDS, &[]) }
    };
    let (say, mut hear) = open(served.channel().await).await.unwrap();
    say.send(ask(1_000_000)).unwrap();
    assert_eq!(hear.message().await.unwrap().unwrap().removed_resources.len(), 1000);
    say.send(ask(1_100_000)).unwrap();
    let refused = hear.message().await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("1048576 bytes"), "{refused}");
    assert_eq!(served.stats.refused.get(Denial::Size), 1);
}

#[tokio::test]
async fn s27_a_connection_has_an_age_and_the_next_one_is_made_at_once() {
    let age = Some(Duration::from_millis(400));
    let served = limited(Limits { age, ..Limits::default() }).await;
    let begun = Instant::now();
    let channel = served.channel().await;
    let (_say, mut hear) = answered(channel.clone()).await.unwrap();
    assert_eq!(hear.message().await.unwrap(), None, "an end that is no failure");
    assert!(begun.elapsed() > Duration::from_millis(300), "{:?}", begun.elapsed());
    // The same client goes on, on another connection.
    answered(channel).await.unwrap();
    assert!(served.stats.aged.load(std::sync::atomic::Ordering::Relaxed) >= 1);
}

#[tokio::test]
async fn s27_streams_end_over_the_time_of_the_drain() {
    let drain = Duration::from_secs(1);
    let served = Served::start_with(&mut world(), false, None, |server| server.drain(drain)).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(answered(served.channel().await).await.unwrap());
    }
    let begun = Instant::now();
    let stop = tokio::spawn(served.stop());
    let ends = streams.into_iter().map(|(say, mut hear)| async move {
        let status = hear.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "shutting down"));
        drop(say);
        begun.elapsed()
    });
    let mut ends = futures::future::join_all(ends).await;
    ends.sort();
    stop.await.unwrap();
    let spread = ends[19].saturating_sub(ends[0]);
    assert!(ends[0] < drain * 7 / 10 && spread > drain / 4, "{ends:?}");
    assert!(begun.elapsed() < 2 * drain, "who has nothing to wait for waits no longer");
}
