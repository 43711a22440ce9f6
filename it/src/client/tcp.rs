//! What a client of a raw TCP protocol does.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use xxhash_rust::xxh3::Xxh3;

use super::PATIENCE;
use crate::backend::noise;

/// A length and a checksum of what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// In bytes.
    pub length: u64,
    /// XXH3 of them.
    pub checksum: u64,
}

/// Connects, sends these bytes (which may be none), and reads as many as it names; returns them and the time to the
/// first. The connection stays open meanwhile.
pub async fn say(address: SocketAddr, bytes: &[u8], expect: usize) -> Result<(Vec<u8>, Duration)> {
    let start = Instant::now();
    let talk = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(bytes).await?;
        let mut read = Vec::with_capacity(expect);
        let mut first = Duration::ZERO;
        while read.len() < expect {
            if stream.read_buf(&mut read).await? == 0 {
                bail!("closed after {} bytes of {expect}", read.len());
            }
            if first.is_zero() {
                first = start.elapsed();
            }
        }
        Ok((read, first))
    };
    timeout(PATIENCE, talk).await.with_context(|| format!("no answer from {address}"))?
}

/// Sends this much noise to a [`crate::backend::sink`], ends its direction, and returns what the sink says it got.
pub async fn push(address: SocketAddr, length: u64) -> Result<Received> {
    let mut stream = TcpStream::connect(address).await?;
    let sent = noise::send(&mut stream, length).await?;
    stream.shutdown().await?;
    let mut words = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut words)).await.context("the sink is silent")??;
    let got = words.split_once(' ').and_then(|(length, checksum)| {
        Some(Received { length: length.parse().ok()?, checksum: checksum.parse().ok()? })
    });
    match got.with_context(|| format!("{words:?} is no sink's answer"))? {
        got if got == sent => Ok(got),
        got => bail!("sent {sent:?}, and the sink got {got:?}"),
    }
}

/// Reads all that a [`crate::backend::source`] sends; then, its direction ended, asks it for an echo the other way.
pub async fn pull(address: SocketAddr) -> Result<Received> {
    let mut stream = TcpStream::connect(address).await?;
    // A source may wait for a first word of its client, as most protocols do.
    stream.write_all(b"go\n").await?;
    drain(&mut stream).await
}

/// Reads to the end of the peer's direction.
pub async fn drain(stream: &mut TcpStream) -> Result<Received> {
    let mut checksum = Xxh3::new();
    let (mut length, mut buffer) = (0, vec![0; 64 << 10]);
    loop {
        let n = timeout(PATIENCE, stream.read(&mut buffer)).await.context("silence")??;
        if n == 0 {
            return Ok(Received { length, checksum: checksum.digest() });
        }
        length += n as u64;
        checksum.update(buffer.get(..n).unwrap_or_default());
    }
}
