#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hickory_proto::op::Message;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record};
use tokio::net::UdpSocket;

use super::*;
use crate::dns::cache::tests::key;

/// A server that answers after a while, as long as it is told to answer.
struct Server {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    answers: Arc<AtomicBool>,
}

/// A client.
const POD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// One of several clients.
fn of(n: usize) -> IpAddr {
    [10, 0, 1, u8::try_from(n).unwrap()].into()
}

async fn server(ttl: u32, after: Duration) -> Server {
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = socket.local_addr().unwrap();
    let server =
        Server { address, asked: Arc::default(), answers: Arc::new(AtomicBool::new(true)) };
    let (asked, answers) = (server.asked.clone(), server.answers.clone());
    tokio::spawn(async move {
        let mut packet = [0; 2000];
        loop {
            let (length, peer) = socket.recv_from(&mut packet).await.unwrap();
            asked.fetch_add(1, Ordering::SeqCst);
            if !answers.load(Ordering::SeqCst) {
                continue;
            }
            let mut answer = Message::from_vec(&packet[..length]).unwrap().into_response();
            let name = answer.queries[0].name.clone();
            let data = RData::A(A::new(198, 51, 100, 7));
            answer.answers.push(Record::from_rdata(name, ttl, data));
            let (socket, bytes) = (socket.clone(), answer.to_vec().unwrap());
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                socket.send_to(&bytes, peer).await.unwrap();
            });
        }
    });
    server
}

fn lookups(server: &Server) -> Arc<Lookups> {
    let metrics = Arc::new(Metrics::new());
    let upstreams = Upstreams::new(&[server.address], metrics.clone());
    Arc::new(Lookups::new(upstreams, metrics))
}

#[tokio::test]
async fn a_question_is_asked_once_however_many_wait_for_it() {
    let server = server(30, Duration::from_millis(100)).await;
    let lookups = lookups(&server);
    let (one, other) = (key("one.example."), key("other.example."));
    let asks = (0..200).map(|n| lookups.ask(if n % 2 == 0 { &one } else { &other }, POD));
    for looked in futures::future::join_all(asks).await {
        assert_eq!((looked.outcome, looked.reply.answers.len()), (Outcome::Forwarded, 1));
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), 2);
    assert_eq!(lookups.at_hand(&one).unwrap().outcome, Outcome::Cached);
    assert!(lookups.flights().is_empty());
}

#[tokio::test]
async fn a_question_goes_on_when_nobody_waits_any_more() {
    let server = server(30, Duration::from_millis(200)).await;
    let lookups = lookups(&server);
    let key = key("one.example.");
    let gave_up = timeout(Duration::from_millis(50), lookups.ask(&key, POD)).await;
    assert!(gave_up.is_err() && lookups.at_hand(&key).is_none());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(lookups.at_hand(&key).unwrap().outcome, Outcome::Cached);
    assert_eq!(server.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_old_answer_is_given_while_upstream_is_silent_and_a_new_one_when_it_is_back() {
    let server = server(1, Duration::ZERO).await;
    let lookups = lookups(&server);
    let key = key("one.example.");
    assert_eq!(lookups.ask(&key, POD).await.outcome, Outcome::Forwarded);
    server.answers.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(lookups.at_hand(&key).is_none());
    let begun = Instant::now();
    let looked = lookups.ask(&key, POD).await;
    assert_eq!((looked.outcome, looked.age), (Outcome::Stale, Age::Stale));
    let waited = begun.elapsed();
    assert!(
        waited >= STALE_AFTER && waited < STALE_AFTER + Duration::from_millis(300),
        "{waited:?}"
    );
    // Upstream is known to be away after some tries: then nobody waits for long.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begun = Instant::now();
    let at_hand = lookups.at_hand(&key);
    let outcome = match at_hand {
        Some(looked) => looked.outcome,
        None => lookups.ask(&key, POD).await.outcome,
    };
    assert_eq!(outcome, Outcome::Stale);
    let most = STALE_AFTER_AWAY + Duration::from_millis(100);
    assert!(begun.elapsed() < most, "{:?}", begun.elapsed());
    server.answers.store(true, Ordering::SeqCst);
    let back = async {
        loop {
            if lookups.at_hand(&key).is_some_and(|looked| looked.outcome == Outcome::Cached) {
                return;
            }
            lookups.ask(&key, POD).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(10), back).await.expect("a fresh answer");
}

#[tokio::test]
async fn too_many_questions_at_once_fail_at_once() {
    let server = server(30, Duration::ZERO).await;
    server.answers.store(false, Ordering::SeqCst);
    let lookups = lookups(&server);
    let flights: Vec<_> =
        (0..FLIGHTS).map(|n| lookups.flight(&key(&format!("n{n}.example.")), of(n % 8))).collect();
    assert!(flights.iter().all(Option::is_some));
    let begun = Instant::now();
    let looked = lookups.ask(&key("one-more.example."), POD).await;
    assert_eq!(looked.outcome, Outcome::Overload);
    assert_eq!(looked.reply.code, ResponseCode::ServFail);
    assert!(begun.elapsed() < Duration::from_millis(200));
    assert!(lookups.flight(&key("n0.example."), POD).is_some(), "those under way can be joined");
}

#[tokio::test]
async fn one_client_leaves_look_ups_for_the_others() {
    let server = server(30, Duration::ZERO).await;
    server.answers.store(false, Ordering::SeqCst);
    let lookups = lookups(&server);
    let share = FLIGHTS / 8;
    let ask = |n: usize, client| lookups.flight(&key(&format!("n{n}.example.")), client).is_some();
    assert!((0..share).all(|n| ask(n, of(1))));
    assert!(!ask(share, of(1)));
    assert!(ask(0, of(1)) && ask(share, of(2)), "what is under way, and what another asks");
}

#[tokio::test]
async fn names_that_hang_do_not_make_others_old() {
    let server = server(1, Duration::ZERO).await;
    let lookups = lookups(&server);
    let known = key("known.example.");
    assert_eq!(lookups.ask(&known, POD).await.outcome, Outcome::Forwarded);
    server.answers.store(false, Ordering::SeqCst);
    assert_eq!(lookups.ask(&key("hangs.example."), POD).await.outcome, Outcome::Failed);
    assert!(lookups.upstreams.all_away());
    server.answers.store(true, Ordering::SeqCst);
    // Nobody has heard of it again yet, and it is well.
    assert_eq!(lookups.ask(&known, POD).await.outcome, Outcome::Forwarded);
}
