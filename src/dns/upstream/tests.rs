#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::Message;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::*;

/// What a server does about a query, the first being number 0.
type Does = fn(usize, Message) -> Vec<Message>;

/// A server with a mind of its own; over TCP it always answers.
struct Server {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    by_tcp: Arc<AtomicUsize>,
    ports: Arc<Mutex<BTreeSet<u16>>>,
}

async fn server(does: Does) -> Server {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    let server =
        Server { address, asked: Arc::default(), by_tcp: Arc::default(), ports: Arc::default() };
    let (asked, ports, by_tcp) =
        (server.asked.clone(), server.ports.clone(), server.by_tcp.clone());
    tokio::spawn(async move {
        let mut packet = [0; 2000];
        loop {
            let (length, peer) = socket.recv_from(&mut packet).await.unwrap();
            ports.lock().unwrap().insert(peer.port());
            let query = Message::from_vec(&packet[..length]).unwrap();
            for answer in does(asked.fetch_add(1, Ordering::SeqCst), query) {
                socket.send_to(&answer.to_vec().unwrap(), peer).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            by_tcp.fetch_add(1, Ordering::SeqCst);
            let length = stream.read_u16().await.unwrap();
            let mut query = vec![0; length.into()];
            stream.read_exact(&mut query).await.unwrap();
            let mut whole = good(Message::from_vec(&query).unwrap());
            for _ in 0..99 {
                whole.answers.push(whole.answers[0].clone());
            }
            let bytes = whole.to_vec().unwrap();
            stream.write_u16(bytes.len().try_into().unwrap()).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        }
    });
    server
}

fn good(query: Message) -> Message {
    let mut answer = query.into_response();
    let data = RData::A(A::new(198, 51, 100, 7));
    answer.answers.push(Record::from_rdata(answer.queries[0].name.clone(), 30, data));
    answer
}

fn code(query: Message, code: ResponseCode) -> Message {
    let mut answer = query.into_response();
    answer.metadata.response_code = code;
    answer
}

fn upstreams(servers: &[&Server]) -> Upstreams {
    let addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
    Upstreams::new(&addresses, Arc::new(Metrics::new()))
}

fn key() -> Key {
    Key {
        name: Name::from_ascii("web.example.").unwrap(),
        kind: RecordType::A,
        dnssec_ok: false,
        checking_disabled: false,
        recursion_desired: true,
    }
}

async fn ask(upstreams: &Upstreams) -> (Reply, Duration) {
    let start = Instant::now();
    (upstreams.ask(&key()).await, start.elapsed())
}

#[tokio::test]
async fn the_second_try_comes_after_250_ms_from_another_port() {
    let server = server(|n, query| if n == 0 { vec![] } else { vec![good(query)] }).await;
    let (reply, took) = ask(&upstreams(&[&server])).await;
    assert_eq!(reply.answers.len(), 1);
    assert!((240..600).contains(&took.as_millis()), "{took:?}");
    assert_eq!(server.ports.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn another_upstream_is_asked_where_one_is_silent_and_then_preferred() {
    let silent = server(|_, _| vec![]).await;
    let well = server(|_, query| vec![good(query)]).await;
    let upstreams = upstreams(&[&silent, &well]);
    // The first query is a probe of the other, too; the later ones are not.
    for _ in 0..3 {
        assert_eq!(ask(&upstreams).await.0.answers.len(), 1);
    }
    let mut slow = 0;
    for _ in 0..10 {
        slow += usize::from(ask(&upstreams).await.1 > Duration::from_millis(100));
    }
    assert!(slow <= 1, "{slow} of 10 waited for the silent one");
    assert!(!upstreams.all_away());
}

#[tokio::test]
async fn a_closed_port_costs_no_wait_where_there_is_another() {
    let gone = server(|_, _| vec![]).await;
    let closed = Server { address: "127.0.0.1:1".parse().unwrap(), ..gone };
    let well = server(|_, query| vec![good(query)]).await;
    let (reply, took) = ask(&upstreams(&[&closed, &well])).await;
    assert_eq!(reply.answers.len(), 1);
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test]
async fn a_server_that_has_no_answer_is_not_the_last_word() {
    let broken = server(|_, query| vec![code(query, ResponseCode::ServFail)]).await;
    let well = server(|_, query| vec![good(query)]).await;
    assert_eq!(ask(&upstreams(&[&broken, &well])).await.0.code, ResponseCode::NoError);
    let other = server(|_, query| vec![code(query, ResponseCode::Refused)]).await;
    let (reply, took) = ask(&upstreams(&[&broken, &other])).await;
    assert!(!reply.is_answer());
    assert!(took < Duration::from_millis(400), "all have said no: {took:?}");
}

#[tokio::test]
async fn a_truncated_answer_is_fetched_over_tcp() {
    let server = server(|_, query| {
        let mut cut = good(query);
        cut.metadata.truncation = true;
        vec![cut]
    })
    .await;
    let (reply, _) = ask(&upstreams(&[&server])).await;
    assert_eq!((reply.answers.len(), reply.truncated), (100, false));
    assert_eq!(server.by_tcp.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_without_edns_is_asked_without() {
    let server = server(|_, query| {
        if query.edns.is_some() {
            vec![code(query, ResponseCode::FormErr)]
        } else {
            vec![good(query)]
        }
    })
    .await;
    let (reply, _) = ask(&upstreams(&[&server])).await;
    assert_eq!((reply.code, reply.answers.len()), (ResponseCode::NoError, 1));
}

#[tokio::test]
async fn forged_answers_are_dropped_and_counted() {
    let server = server(|_, query| {
        let mut wrong_id = good(query.clone());
        wrong_id.metadata.id ^= 1;
        let mut wrong_name = good(query.clone());
        wrong_name.queries[0].name = Name::from_ascii("evil.example.").unwrap();
        let mut wrong_type = good(query.clone());
        wrong_type.queries[0].query_type = RecordType::AAAA;
        for forged in [&mut wrong_id, &mut wrong_name, &mut wrong_type] {
            forged.answers[0].data = RData::A(A::new(6, 6, 6, 6));
        }
        vec![wrong_id, wrong_name, wrong_type, query.clone(), good(query)]
    })
    .await;
    let metrics = Arc::new(Metrics::new());
    let upstreams = Upstreams::new(&[server.address], metrics.clone());
    let (reply, took) = ask(&upstreams).await;
    assert_eq!(reply.answers[0].data, RData::A(A::new(198, 51, 100, 7)));
    assert!(took < Duration::from_millis(200), "{took:?}");
    let text = metrics.text();
    assert!(text.contains("strange_responses_total 3"), "{text}");
}

#[tokio::test]
async fn patience_ends_in_a_failure() {
    let silent = server(|_, _| vec![]).await;
    let upstreams = upstreams(&[&silent]);
    let (reply, took) = ask(&upstreams).await;
    assert_eq!(reply.code, ResponseCode::ServFail);
    assert!((4500..5500).contains(&took.as_millis()), "{took:?}");
    assert_eq!(silent.asked.load(Ordering::SeqCst), 1 + TRIES.len());
    assert!(upstreams.all_away());
}

#[tokio::test]
async fn many_questions_share_few_sockets_and_each_gets_its_own_answer() {
    let server = server(|_, query| vec![good(query)]).await;
    let upstreams = upstreams(&[&server]);
    let asks = (0..500).map(|n| {
        let name = Name::from_ascii(format!("n{n}.example.")).unwrap();
        let key = Key { name: name.clone(), ..key() };
        let upstreams = &upstreams;
        async move { (upstreams.ask(&key).await, name) }
    });
    for (reply, name) in futures::future::join_all(asks).await {
        assert_eq!(reply.answers[0].name, name);
    }
    let ports = server.ports.lock().unwrap().len();
    assert!((2..=16).contains(&ports), "{ports} ports");
}
