//! Queries by TCP: length and message, any number on a connection (RFC 7766).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::timeout;
use tracing::debug;

use super::udp::{Owed, Signals};
use crate::dns::engine::{Engine, Step};
use crate::dns::query::Proto;
use crate::dns::seats::{Seat, Seats};

/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(10);
/// The same while connections are many.
const IDLE_CROWDED: Duration = Duration::from_secs(1);
/// How long a message may take from its first byte to its last.
const ONE_MESSAGE: Duration = Duration::from_secs(3);
/// How long a client may take to accept an answer.
const ONE_WRITE: Duration = Duration::from_secs(3);
/// How many queries of one connection may wait for upstream at once; more are not read.
const AT_ONCE: usize = 32;

/// What all connections share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Who answers.
    pub engine: Arc<Engine>,
    /// What is told and counted.
    pub signals: Arc<Signals>,
    /// How many there may be.
    pub seats: Arc<Seats>,
    /// Turns true when the process is to end.
    pub stopping: watch::Receiver<bool>,
}

/// Takes connections until the process is to end, and then those that have come already.
pub async fn accept(listener: TcpListener, mut shared: Shared) {
    loop {
        let stopping = *shared.stopping.borrow();
        let accepted = if stopping {
            match timeout(Duration::ZERO, listener.accept()).await {
                Ok(accepted) => accepted,
                Err(_) => return,
            }
        } else {
            tokio::select! {
                accepted = listener.accept() => accepted,
                _ = shared.stopping.changed() => continue,
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                // Without a seat the connection is closed at once: clients come again.
                if let Some(seat) = shared.seats.take(peer.ip()) {
                    let shared = shared.clone();
                    tokio::spawn(async move {
                        shared.engine.metrics().connection(true);
                        if let Err(error) = serve(stream, peer.ip(), seat, &shared).await {
                            debug!(client = %peer, %error, "a connection ended");
                        }
                        shared.engine.metrics().connection(false);
                    });
                }
            }
            Err(error) => {
                // Too many open files, say: others will close theirs.
                debug!(%error, "taking a connection");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Where answers are written.
struct Writer {
    half: OwnedWriteHalf,
    /// The connection counts for as long as answers are owed on it.
    _seat: Seat,
}

/// Serves a connection until its client has said enough.
async fn serve(stream: TcpStream, client: IpAddr, seat: Seat, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, half) = stream.into_split();
    let writer = Arc::new(Mutex::new(Some(Writer { half, _seat: seat })));
    let waiting = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(packet) = next(&mut reader, shared).await? {
        match shared.engine.take(&packet, Proto::Tcp, client) {
            Step::Reply(answer) => write(&writer, &answer).await?,
            Step::Later(later) => {
                let Ok(permit) = waiting.clone().acquire_owned().await else { break };
                let (engine, writer) = (shared.engine.clone(), writer.clone());
                let owed = Owed::new(&shared.signals);
                tokio::spawn(async move {
                    if let Some(answer) = engine.finish(*later).await
                        && let Err(error) = write(&writer, &answer).await
                    {
                        debug!(%client, %error, "an answer could not be sent");
                    }
                    drop((permit, owed));
                });
            }
            // Nothing that a client would send.
            Step::Nothing => break,
        }
    }
    // Answers that are owed hold the other half, and close it when they have been sent.
    Ok(())
}

/// The next message; `None` where there is none.
async fn next(reader: &mut OwnedReadHalf, shared: &Shared) -> io::Result<Option<Vec<u8>>> {
    let idle = if shared.seats.crowded() { IDLE_CROWDED } else { IDLE };
    let mut stopping = shared.stopping.clone();
    let mut first = [0];
    let stopped = async {
        // The sender lives as long as the server; either way it is over.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        // A query may be on its way.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let read = tokio::select! {
        read = timeout(idle, reader.read(&mut first)) => read,
        () = stopped => return Ok(None),
    };
    match read {
        Ok(Ok(0)) | Err(_) => return Ok(None),
        Ok(Err(error)) => return Err(error),
        Ok(Ok(_)) => {}
    }
    let rest = async {
        let [high] = first;
        let low = reader.read_u8().await?;
        let mut message = vec![0; u16::from_be_bytes([high, low]).into()];
        reader.read_exact(&mut message).await?;
        Ok(message)
    };
    timeout(ONE_MESSAGE, rest).await?.map(Some)
}

/// Writes an answer whole, or ends the connection: what came after half an answer would be read as
/// the rest of it.
async fn write(writer: &Mutex<Option<Writer>>, answer: &[u8]) -> io::Result<()> {
    let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
    let bytes = [&length.to_be_bytes()[..], answer].concat();
    let mut place = writer.lock().await;
    let mut writer = place.take().ok_or(io::ErrorKind::BrokenPipe)?;
    timeout(ONE_WRITE, writer.half.write_all(&bytes)).await??;
    *place = Some(writer);
    Ok(())
}

/// Whether answers are still owed.
pub fn owes(signals: &Signals) -> bool {
    signals.owed.load(Ordering::SeqCst) > 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    /// A client stops reading in the middle of an answer; nothing comes behind that half.
    #[tokio::test]
    async fn after_half_an_answer_the_connection_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let (_reader, half) = stream.into_split();
        let seat = Seats::new(8).take(peer.ip()).unwrap();
        let writer = Mutex::new(Some(Writer { half, _seat: seat }));
        let answer = vec![7; 60_000];
        let mut written = 0;
        let error = loop {
            match write(&writer, &answer).await {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < 10_000, "nobody holds so much");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let late = write(&writer, &[8; 100]).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::BrokenPipe);

        let mut all = Vec::new();
        // It may be cut short: what is sent no more is no answer.
        let _ = client.read_to_end(&mut all).await;
        let whole = answer.len() + 2;
        assert!(all.len() < (written + 1) * whole, "{} of {written}", all.len());
        for message in all.chunks(whole) {
            assert!(message.iter().skip(2).all(|byte| *byte == 7));
        }
    }
}
