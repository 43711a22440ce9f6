//! Bytes that compress, repeat and align with nothing, the same in every run.

use anyhow::Result;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use xxhash_rust::xxh3::Xxh3;

use crate::client::Received;

/// The first bytes of the noise.
pub fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // A word at a time: byte by byte, a debug build would take a second for 8 MB, in which whoever
    // shares the thread is silent.
    let mut noise = Vec::with_capacity(length + 8);
    while noise.len() < length {
        // xorshift64, a full-period generator of three shifts.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(length);
    noise
}

/// Sends this much of it (a prime-sized block again and again); returns what was sent.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), length: u64) -> Result<Received> {
    let block = bytes(65_521);
    let mut checksum = Xxh3::new();
    let mut left = length;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        let piece = block.get(..n).unwrap_or_default();
        stream.write_all(piece).await?;
        checksum.update(piece);
        left -= n as u64;
    }
    Ok(Received { length, checksum: checksum.digest() })
}
