//! One connection, from its first byte to its last.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

use super::cork::Cork;
use super::leave::{Leave, Why, about, within};
use super::limits::{Connection, Denial};
use super::peer::Peer;
use super::server::LAST;
use super::service::{Service, Shared};
use super::stats::Open;

/// How much of a request is taken in before it is read; large ones arrive in a few round trips.
const WINDOW: u32 = 256 << 10;

/// How much of the responses of one stream is copied ahead of the socket.
const SEND_BUFFER: usize = 64 << 10;

/// Serves it. `left` is how long its peer's certificate is valid, `drain` over how long connections
/// end once the server is told to stop.
pub(super) async fn serve<I>(
    io: I,
    peer: Peer,
    seat: Arc<Connection>,
    left: Option<Duration>,
    shared: Arc<Shared>,
    drain: Duration,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = Open::connection(&shared.stats);
    let limits = &shared.room.limits;
    let (leave, word) = (Leave::default(), peer.word.clone());
    let service = Service::new(shared.clone(), peer, seat.clone(), leave.clone());
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.pong)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_concurrent_streams(limits.connection_streams)
        .max_send_buf_size(SEND_BUFFER);
    let service = TowerToHyperService::new(service);
    let cork = Cork::new(io);
    let mut connection = pin!(http.serve_connection(TokioIo::new(cork.clone()), service));

    let age = limits.age.map(about).into_iter().chain(left).min();
    let mut aged = pin!(at(age));
    let mut first = pin!(at(Some(limits.first)));
    let mut stopped = pin!(async {
        shared.stop.cancelled().await;
        sleep(within(drain)).await;
    });
    let mut begins = true;
    let why = loop {
        tokio::select! {
            ended = poll_fn(|cx| cork.poll(connection.as_mut(), cx)) => return end(&word, ended),
            () = seat.cut.cancelled() => return,
            () = first.as_mut(), if begins => {
                begins = false;
                if !seat.opened() {
                    shared.stats.refused.add(Denial::First);
                    tracing::debug!(peer = %word, "the connection has no stream, and is cut");
                    return;
                }
            }
            () = aged.as_mut() => break Why::Age,
            () = stopped.as_mut() => break Why::Shutdown,
        }
    };
    if why == Why::Age {
        shared.stats.aged.fetch_add(1, Relaxed);
        tracing::debug!(peer = %word, "the connection has its age, and ends");
    }
    connection.as_mut().graceful_shutdown();
    leave.end(why);
    tokio::select! {
        ended = poll_fn(|cx| cork.poll(connection.as_mut(), cx)) => end(&word, ended),
        () = seat.cut.cancelled() => {}
        () = sleep(LAST) => {}
    }
}

/// Done after this time; without one, never.
async fn at(after: Option<Duration>) {
    match after {
        Some(after) => sleep(after).await,
        None => std::future::pending().await,
    }
}

fn end(peer: &str, ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(peer, "connection ended: {error}");
    }
}
