//! New connections: counted, shaken hands with, or told why not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use super::connection::serve;
use super::goodbye::{Code, goodbye};
use super::handshake::{Failed, handshake};
use super::limits::{Connection, Denial};
use super::listen::Listener;
use super::peer::{Peer, Tls};
use super::service::Shared;

/// How many are told at a time why they are not served; more are cut without a word.
const GOODBYES: usize = 64;

/// Accepts for ever. `drain` is over how long connections end once the server is told to stop.
pub(super) async fn accept(
    listener: Listener,
    shared: Arc<Shared>,
    tracker: TaskTracker,
    drain: Duration,
) {
    let goodbyes = TaskTracker::new();
    loop {
        let accepted = match &listener {
            Listener::Tcp(tcp) => {
                tcp.accept().await.map(|(stream, from)| match seat(&shared, Some(from)) {
                    Ok(seat) => {
                        quick(&stream);
                        let peer = Peer { word: from.to_string().into(), proven: None };
                        tracker.spawn(serve(stream, peer, seat, None, shared.clone(), drain));
                    }
                    Err(reason) if goodbyes.len() < GOODBYES => {
                        let words = reason.words(&shared.room.limits);
                        let say = async move {
                            goodbye(stream, Code::EnhanceYourCalm, &words).await;
                        };
                        drop(goodbyes.spawn(say));
                    }
                    Err(_) => {}
                })
            }
            Listener::Tls(tcp, tls) => tcp.accept().await.map(|(stream, from)| {
                // Who is not served gets no handshake, which is what costs most.
                if let Ok(seat) = seat(&shared, Some(from)) {
                    quick(&stream);
                    let secured = secured(stream, from, tls.clone(), seat, shared.clone(), drain);
                    tracker.spawn(secured);
                }
            }),
            Listener::Unix(socket) => socket.listener.accept().await.map(|(stream, _)| {
                let pid = stream.peer_cred().ok().and_then(|cred| cred.pid());
                let word = pid.map_or_else(|| "unix".into(), |pid| format!("unix:pid={pid}"));
                if let Ok(seat) = seat(&shared, None) {
                    let peer = Peer { word: word.into(), proven: None };
                    tracker.spawn(serve(stream, peer, seat, None, shared.clone(), drain));
                }
            }),
        };
        if let Err(error) = accepted {
            // Out of file descriptors, most likely: they come back as connections end.
            tracing::warn!("xDS cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A response is often one small segment, and the next one must not wait for it.
fn quick(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
}

/// A connection's part of the room; a refusal is counted and said.
fn seat(shared: &Arc<Shared>, from: Option<SocketAddr>) -> Result<Arc<Connection>, Denial> {
    shared.room.connection(from.map(|from| from.ip())).inspect_err(|reason| {
        tell(shared, from, *reason, &reason.words(&shared.room.limits));
    })
}

/// Counts a refusal, and says it where it is news.
fn tell(shared: &Shared, from: Option<SocketAddr>, reason: Denial, words: &str) {
    shared.stats.refused.add(reason);
    let peer = from.map_or_else(|| "unix".to_owned(), |from| from.to_string());
    let address = from.map(|from| from.ip());
    if shared.lately.is_news(address, words, Instant::now()) {
        tracing::warn!(peer, reason = reason.as_str(), "xDS connection refused: {words}");
    } else {
        tracing::debug!(peer, reason = reason.as_str(), "xDS connection refused again: {words}");
    }
}

/// Serves a connection with TLS.
async fn secured(
    stream: TcpStream,
    from: SocketAddr,
    tls: Tls,
    seat: Arc<Connection>,
    shared: Arc<Shared>,
    drain: Duration,
) {
    let limits = &shared.room.limits;
    let hands = async {
        tokio::select! {
            hands = tokio::time::timeout(limits.first, handshake(&tls, stream)) => hands.ok(),
            () = shared.stop.cancelled() => Some(Err(Failed::Gone)),
        }
    };
    let words = match hands.await {
        Some(Ok((stream, proven))) => {
            let left = proven.as_ref().ok().map(|proven| proven.left);
            let name = proven.map(|proven| proven.name).map_err(Into::into);
            let peer = Peer { word: from.to_string().into(), proven: Some(name) };
            return serve(stream, peer, seat, left, shared.clone(), drain).await;
        }
        Some(Err(Failed::Gone)) => return,
        Some(Err(Failed::PlainText(stream))) => {
            let words = Denial::PlainText.words(limits);
            tell(&shared, Some(from), Denial::PlainText, &words);
            return goodbye(stream, Code::InadequateSecurity, &words).await;
        }
        Some(Err(Failed::Handshake(words))) => words,
        None => format!("no handshake came to its end within {:?}", limits.first),
    };
    tell(&shared, Some(from), Denial::Handshake, &words);
}
