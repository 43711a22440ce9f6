#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Admin, Metrics, NoPage, Pages};
use crate::health::Health;

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

fn serve(health: &Health) -> Served {
    let admin = Admin::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = admin.address();
    let stop = CancellationToken::new();
    let metrics = Metrics::default();
    metrics.add_health(health);
    let pages = Pages::default().with("/echo", "/echo?word=", |asked| match asked.get("word") {
        Some(word) => Ok(serde_json::to_vec(word).unwrap()),
        None => Err(NoPage::Wrong("say a word".into())),
    });
    let task = tokio::spawn(admin.run(health.clone(), metrics, pages, stop.clone()));
    Served { address, stop, task }
}

impl Served {
    async fn get(&self, path: &str) -> String {
        self.ask("GET", path).await
    }

    async fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }
}

#[tokio::test]
async fn probes_are_answered_by_status_and_in_words() {
    let health = Health::default();
    let part = health.part("source");
    let served = serve(&health);
    assert!(served.get("/livez").await.starts_with("HTTP/1.1 200 "));
    part.waiting("no list of Pods yet");
    let waiting = served.get("/readyz").await;
    assert!(waiting.starts_with("HTTP/1.1 503 "), "{waiting}");
    assert!(waiting.contains("source: not ready: no list of Pods yet"), "{waiting}");
    part.ready();
    assert!(served.get("/readyz").await.starts_with("HTTP/1.1 200 "));
    assert!(served.get("/readyz/source").await.starts_with("HTTP/1.1 200 "));
    assert!(served.get("/readyz/other").await.starts_with("HTTP/1.1 404 "));
    assert!(served.get("/other").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn metrics_are_open_metrics() {
    let health = Health::default();
    health.part("source").degraded("something");
    let served = serve(&health);
    let text = served.get("/metrics").await;
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.contains("part_state{part=\"source\",state=\"degraded\"} 1\n"), "{text}");
    assert!(text.contains("part_state{part=\"source\",state=\"ready\"} 0\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn pages_are_json_and_say_how_to_ask() {
    let served = serve(&Health::default());
    let page = served.get("/echo?word=a%20b").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("\"a b\""), "{page}");
    assert!(page.contains("content-type: application/json"), "{page}");
    let wrong = served.get("/echo").await;
    assert!(wrong.starts_with("HTTP/1.1 400 ") && wrong.ends_with("say a word\n"), "{wrong}");
    assert!(served.get("/").await.contains("/echo?word=\n"));
    let head = served.ask("HEAD", "/echo?word=a").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(served.ask("POST", "/echo?word=a").await.starts_with("HTTP/1.1 405 "));
}

#[tokio::test]
async fn it_ends_when_told_though_a_client_stays() {
    let served = serve(&Health::default());
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    idle.write_all(b"GET / HT").await.unwrap();
    assert!(served.get("/").await.contains("/metrics"));
    served.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(3), served.task).await;
    ended.expect("within the time for last answers").unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_says_nothing_is_hung_up_on() {
    let served = serve(&Health::default());
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    idle.write_all(b"GET / HT").await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(8), idle.read_to_end(&mut rest));
    let _ = read.await.expect("hung up on within the limit");
}

#[test]
fn an_address_in_use_is_refused_with_the_way_out() {
    let first = Admin::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Admin::bind(first.address()).unwrap_err().to_string();
    assert!(error.contains(&first.address().to_string()), "{error}");
    assert!(error.contains("choose another port"), "{error}");
}
