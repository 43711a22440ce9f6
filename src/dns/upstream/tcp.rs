//! One question to one upstream over TCP: for what a datagram could not hold.

use std::io;
use std::net::SocketAddr;

use hickory_proto::op::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::exchange::{self, ExchangeError};
use crate::dns::cache::Key;

/// Asks on a connection of its own.
///
/// # Errors
/// Where the upstream cannot be reached, or closes before it answers. Without an answer it waits
/// for ever.
pub async fn ask(upstream: SocketAddr, key: &Key, edns: bool) -> Result<Message, ExchangeError> {
    let query = exchange::message(key, edns);
    let bytes = query.to_vec()?;
    let mut stream = TcpStream::connect(upstream).await?;
    stream.set_nodelay(true)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    // The length and the message in one write: some servers expect them in one segment.
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await?;
    loop {
        let length = stream.read_u16().await?;
        let mut answer = vec![0; length.into()];
        stream.read_exact(&mut answer).await?;
        let message = Message::from_vec(&answer).map_err(io::Error::other)?;
        if message.metadata.id == query.metadata.id && exchange::answers(&message, key) {
            return Ok(message);
        }
    }
}
