//! Backends of raw TCP protocols.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Backend, noise, serve};
use crate::client::drain;
use crate::net::Netns;

/// Sends back what it gets, to the end of the client's direction.
pub async fn echo(netns: &Netns, address: SocketAddr) -> Result<Backend> {
    serve(netns, address, |mut stream, _| async move {
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await?;
        Ok(write.shutdown().await?)
    })
    .await
}

/// Speaks first: sends this greeting, then echoes.
pub async fn greeter(netns: &Netns, address: SocketAddr, greeting: &str) -> Result<Backend> {
    let greeting = greeting.to_owned();
    serve(netns, address, move |mut stream, _| {
        let greeting = greeting.clone();
        async move {
            stream.write_all(greeting.as_bytes()).await?;
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await?;
            Ok(write.shutdown().await?)
        }
    })
    .await
}

/// Reads to the end of the client's direction, and only then answers: `<bytes> <checksum>`.
pub async fn sink(netns: &Netns, address: SocketAddr) -> Result<Backend> {
    serve(netns, address, |mut stream, _| async move {
        let got = drain(&mut stream).await?;
        stream.write_all(format!("{} {}", got.length, got.checksum).as_bytes()).await?;
        Ok(stream.shutdown().await?)
    })
    .await
}

/// Waits for a first byte, sends this much noise, ends its own direction, and goes on reading until the client ends
/// its own.
pub async fn source(netns: &Netns, address: SocketAddr, length: u64) -> Result<Backend> {
    serve(netns, address, move |mut stream, _| async move {
        stream.read_u8().await?;
        noise::send(&mut stream, length).await?;
        stream.shutdown().await?;
        drain(&mut stream).await.map(drop)
    })
    .await
}

/// Accepts and closes at once.
pub async fn closer(netns: &Netns, address: SocketAddr) -> Result<Backend> {
    serve(netns, address, |stream, _| async move {
        drop(stream);
        Ok(())
    })
    .await
}
