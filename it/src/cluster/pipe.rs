//! One connection through a [`Proxy`](super::Proxy).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// What the network does at the moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weather {
    /// How often all connections were closed.
    pub(super) cuts: u64,
    /// Whether nothing arrives.
    pub(super) silent: bool,
    /// How much later everything arrives.
    pub(super) delay: Duration,
}

/// Carries a connection until both sides have ended it, one is broken, or the network cuts it (the end of the proxy,
/// which takes its weather along, is such a cut).
pub(super) async fn carry<F>(
    client: TcpStream,
    dial: impl FnOnce() -> F,
    weather: watch::Receiver<Weather>,
) where
    F: Future<Output = std::io::Result<TcpStream>>,
{
    let cuts = weather.borrow().cuts;
    let mut sky = weather.clone();
    let both = async {
        let mut heard = weather.clone();
        // That it ended is the whole of the news, and how, both sides know.
        let _ = audible(&mut heard).await;
        if let Ok(server) = dial().await {
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let _ = tokio::try_join!(
                direction(&mut from_client, &mut to_server, weather.clone()),
                direction(&mut from_server, &mut to_client, weather.clone()),
            );
            // A silent network does not tell either side that the other is gone.
            let _ = audible(&mut heard).await;
        }
    };
    tokio::select! {
        _ = sky.wait_for(|now| now.cuts != cuts) => {}
        () = both => {}
    }
}

/// Waits until the network carries anything.
async fn audible(weather: &mut watch::Receiver<Weather>) -> std::io::Result<()> {
    weather.wait_for(|now| !now.silent).await.map(drop).map_err(std::io::Error::other)
}

/// Carries the bytes of one direction, each when it is due, and then its end.
async fn direction(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
) -> std::io::Result<()> {
    let (send, mut due) = mpsc::channel::<(Instant, Bytes)>(64);
    let sky = weather.clone();
    let reading = async move {
        loop {
            let mut buffer = BytesMut::with_capacity(16 * 1024);
            if from.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            let when = Instant::now() + sky.borrow().delay;
            if send.send((when, buffer.freeze())).await.is_err() {
                return Ok(());
            }
        }
    };
    let writing = async move {
        while let Some((when, bytes)) = due.recv().await {
            sleep_until(when).await;
            audible(&mut weather).await?;
            to.write_all(&bytes).await?;
        }
        audible(&mut weather).await?;
        to.shutdown().await
    };
    tokio::try_join!(reading, writing).map(drop)
}
