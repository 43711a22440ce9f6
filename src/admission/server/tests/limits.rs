//! The limits, each from both sides.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::StreamBody;

use super::*;

#[tokio::test]
async fn a_body_at_the_limit_is_read_and_one_byte_more_is_not() {
    let text = managed().to_string();
    let limits = Limits { body: text.len(), ..Limits::default() };
    let (webhook, metrics) = webhook(limits);
    let chunks = |text: &str| {
        let chunks: Vec<_> = text.as_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
        let frames =
            chunks.into_iter().map(|chunk| Ok::<_, Infallible>(http_body::Frame::data(chunk)));
        Body::new(StreamBody::new(futures::stream::iter(frames)))
    };
    assert_eq!(ask(&webhook, post("/mutate", text.clone())).await.0, StatusCode::OK);
    assert_eq!(ask(&webhook, post("/mutate", chunks(&text))).await.0, StatusCode::OK);
    let longer = format!("{text} ");
    // By its length, where it says one; else as it arrives.
    let mut said = post("/mutate", Body::empty());
    said.headers_mut().insert(header::CONTENT_LENGTH, longer.len().into());
    assert_eq!(ask(&webhook, said).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        ask(&webhook, post("/mutate", chunks(&longer))).await.0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let line = "aether_webhook_failures_total{reason=\"too_large\"} 2";
    assert!(scrape(&metrics).contains(line));
}

/// A body that never comes. It may not keep others from being answered for longer than its time.
fn stuck() -> Request<Body> {
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
    post("/mutate", Body::new(StreamBody::new(never)))
}

#[tokio::test]
async fn a_request_that_stalls_ends_and_gives_its_room_back() {
    let limits = Limits { requests: 1, time: Duration::from_millis(800), ..Limits::default() };
    let (webhook, metrics) = webhook(limits);
    let stalled = tokio::spawn({
        let webhook = webhook.clone();
        async move { ask(&webhook, stuck()).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(scrape(&metrics).contains("aether_webhook_in_flight 1"));
    // The second waits for the first, and gets its turn.
    let start = tokio::time::Instant::now();
    let (status, _) = ask(&webhook, post("/mutate", managed().to_string())).await;
    assert_eq!(status, StatusCode::OK);
    assert!(start.elapsed() > Duration::from_millis(300), "{:?}", start.elapsed());
    let (status, body) = stalled.await.unwrap();
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert!(scrape(&metrics).contains("failures_total{reason=\"timed_out\"} 1"));
    assert!(scrape(&metrics).contains("aether_webhook_in_flight 0"));
}

#[tokio::test]
async fn the_bytes_of_all_bodies_are_bounded() {
    let time = Duration::from_millis(800);
    let limits = Limits { body: 64 << 10, memory: 130 << 10, time, ..Limits::default() };
    let (webhook, _) = webhook(limits);
    // Two without a length take all of it.
    let stalled: Vec<_> = (0..2)
        .map(|_| {
            let webhook = webhook.clone();
            tokio::spawn(async move { ask(&webhook, stuck()).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let start = tokio::time::Instant::now();
    let (status, _) = ask(&webhook, post("/mutate", managed().to_string())).await;
    assert_eq!(status, StatusCode::OK);
    assert!(start.elapsed() > Duration::from_millis(300), "{:?}", start.elapsed());
    for stalled in stalled {
        assert_eq!(stalled.await.unwrap().0, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_no_review() {
    let (webhook, _) = webhook(Limits::default());
    let broken = futures::stream::iter([
        Ok(http_body::Frame::data(Bytes::from_static(b"{"))),
        Err(std::io::Error::other("reset")),
    ]);
    let (status, body) = ask(&webhook, post("/mutate", Body::new(StreamBody::new(broken)))).await;
    assert_eq!((status, body.contains("reset")), (StatusCode::BAD_REQUEST, true), "{body}");
}

/// Who finds no room within the time of a request is told so, and may try again.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_finds_no_room_is_told_so() {
    let limits = Limits { requests: 1, time: Duration::from_millis(200), ..Limits::default() };
    let respond = |review: &crate::admission::Review, entry: Entry, settings: &Settings| {
        std::thread::sleep(Duration::from_millis(800));
        crate::admission::answer::Answer::to(review, entry, settings)
    };
    let metrics = Metrics::default();
    let webhook = Webhook::responding(settings(), metrics.clone(), limits, Box::new(respond));
    let webhook = Arc::new(webhook);
    let slow = tokio::spawn({
        let webhook = webhook.clone();
        async move { ask(&webhook, post("/mutate", managed().to_string())).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (status, body) = ask(&webhook, post("/mutate", managed().to_string())).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert!(scrape(&metrics).contains("failures_total{reason=\"overloaded\"} 1"));
    assert_eq!(slow.await.unwrap().0, StatusCode::OK);
}
