//! The room and the body, without a network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;

use std::sync::Arc;

use super::*;

/// How long a request may take here.
const SLOW: Duration = Duration::from_millis(200);

fn room(limits: Limits) -> Arc<Room> {
    Arc::new(Room::new(limits, Arc::default()))
}

#[allow(clippy::unnecessary_wraps)]
fn peer(last: u8) -> Option<IpAddr> {
    Some(IpAddr::from([10, 0, 0, last]))
}

#[test]
fn everything_is_given_back_and_nobody_is_remembered() {
    let room = room(Limits { connections: 3, peer_connections: 2, ..Limits::default() });
    let (one, two) = (room.connection(peer(1)).unwrap(), room.connection(peer(1)).unwrap());
    assert_eq!(room.connection(peer(1)).unwrap_err(), Denial::PeerConnections);
    let mapped = "::ffff:10.0.0.1".parse().ok();
    assert_eq!(room.connection(mapped).unwrap_err(), Denial::PeerConnections);
    let other = room.connection(peer(2)).unwrap();
    assert_eq!(room.connection(peer(3)).unwrap_err(), Denial::Connections);
    drop(other);
    assert_eq!(room.peers(), 1);
    let (stream, mut named) = (one.stream().unwrap(), two.stream().unwrap());
    named.names(7).unwrap();
    drop((one, two));
    drop((stream, named));
    drop(room.connection(peer(3)).unwrap());
    assert_eq!(room.peers(), 0);
    for _ in 0..3 {
        room.connection(peer(1)).unwrap();
    }
}

#[test]
fn what_is_not_told_apart_is_counted_in_all() {
    let room = room(Limits { connections: 4, peer_connections: 1, ..Limits::default() });
    let local = "127.0.0.1".parse().ok();
    let held: Vec<_> = [None, None, local, local].map(|peer| room.connection(peer).unwrap()).into();
    assert_eq!(room.connection(None).unwrap_err(), Denial::Connections);
    assert_eq!(room.connection(peer(1)).unwrap_err(), Denial::Connections);
    drop(held);
    assert_eq!(room.peers(), 0);
}

type Say = mpsc::UnboundedSender<Result<Frame, std::io::Error>>;
type Frame = http_body::Frame<Bytes>;

/// A body that says what it is told.
fn body(connection: &Arc<Connection>) -> (Say, Metered) {
    let (say, hear) = mpsc::unbounded_channel();
    let body = StreamBody::new(UnboundedReceiverStream::new(hear));
    (say, Metered::new(body, connection.clone()))
}

/// The beginning of a message of this length.
fn head(length: u32) -> Vec<u8> {
    std::iter::once(0).chain(length.to_be_bytes()).collect()
}

fn say(to: &Say, bytes: Vec<u8>) {
    to.send(Ok(Frame::data(bytes.into()))).unwrap();
}

async fn soon<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Result<usize, B::Error>> {
    let frame = tokio::time::timeout(Duration::from_millis(50), body.frame()).await.ok()??;
    Some(frame.map(|frame| frame.data_ref().map_or(0, Bytes::len)))
}

#[tokio::test]
async fn large_requests_wait_for_each_other() {
    let limits = Limits {
        request: 1 << 20,
        peer_requests: 1 << 20,
        requests: 1 << 20,
        loopback: true,
        ..Limits::default()
    };
    let room = room(limits);
    let (one, two) = (room.connection(peer(1)).unwrap(), room.connection(peer(2)).unwrap());
    let ((say_a, mut a), (say_b, mut b), (say_c, mut c)) = (body(&one), body(&two), body(&one));
    say(&say_a, head(700_000));
    assert_eq!(soon(&mut a).await.unwrap().unwrap(), 5);
    // There is no room for it, neither for another peer's nor for one of its own.
    say(&say_b, head(700_000));
    say(&say_c, head(700_000));
    assert!(soon(&mut b).await.is_none() && soon(&mut c).await.is_none());
    // What is small needs none.
    let (say_d, mut d) = body(&one);
    say(&say_d, [head(3), vec![1, 2, 3]].concat());
    assert_eq!(soon(&mut d).await.unwrap().unwrap(), 8);
    // It ends, and the next one begins when it was read: when more is asked for.
    say(&say_a, vec![0; 700_000]);
    assert_eq!(soon(&mut a).await.unwrap().unwrap(), 700_000);
    assert!(soon(&mut b).await.is_none());
    assert!(soon(&mut a).await.is_none());
    assert_eq!(soon(&mut b).await.unwrap().unwrap(), 5);
    // One that is dropped in the middle gives its room back too.
    drop((say_b, b));
    assert_eq!(soon(&mut c).await.unwrap().unwrap(), 5);
}

#[tokio::test]
async fn a_request_comes_to_its_end_or_its_stream_does() {
    let room = room(Limits { slow: SLOW, ..Limits::default() });
    let connection = room.connection(peer(1)).unwrap();
    let (to, mut body) = body(&connection);
    let next = async |body: &mut Metered| body.frame().await.unwrap();
    say(&to, head(20));
    say(&to, vec![0; 10]);
    assert!(next(&mut body).await.is_ok() && next(&mut body).await.is_ok());
    let late = next(&mut body).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(late.message().contains("within 200ms"), "{late}");
    assert_eq!(room.stats.refused.get(Denial::Slow), 1);
}

#[tokio::test]
async fn whoever_does_not_read_its_refusal_is_cut() {
    let room = room(Limits { slow: SLOW, ..Limits::default() });
    let connection = room.connection(peer(1)).unwrap();
    let (to, mut body) = body(&connection);
    say(&to, head(1 << 20));
    assert!(body.frame().await.unwrap().is_ok());
    // Nobody asks for more.
    tokio::time::sleep(SLOW).await;
    assert!(!connection.cut.is_cancelled());
    let cut = tokio::time::timeout(20 * SLOW, connection.cut.cancelled()).await;
    assert!(cut.is_ok());
}

#[tokio::test]
async fn a_header_in_pieces_and_several_messages_in_one_frame_are_read() {
    let room = room(Limits { request: 100, slow: SLOW, ..Limits::default() });
    let connection = room.connection(peer(1)).unwrap();
    let (to, mut body) = body(&connection);
    let message = [head(100), vec![7; 100]].concat();
    for byte in &message {
        say(&to, vec![*byte]);
        assert_eq!(body.frame().await.unwrap().unwrap().data_ref().unwrap().len(), 1);
    }
    say(&to, [message.clone(), head(0), message].concat());
    assert!(body.frame().await.unwrap().is_ok());
    // Silence between messages is no slowness.
    assert!(tokio::time::timeout(2 * SLOW, body.frame()).await.is_err());
    say(&to, head(101));
    let refused = body.frame().await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
}
