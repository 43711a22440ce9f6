//! A WebSocket backend.

use std::net::SocketAddr;

use anyhow::Result;
use futures::{SinkExt, StreamExt};

use super::{Backend, serve};
use crate::net::Netns;

/// Echoes texts and binary messages.
pub async fn ws_echo(netns: &Netns, address: SocketAddr) -> Result<Backend> {
    serve(netns, address, |stream, counts| async move {
        let mut socket = tokio_tungstenite::accept_async(stream).await?;
        counts.request();
        while let Some(message) = socket.next().await {
            let message = message?;
            if message.is_text() || message.is_binary() {
                socket.send(message).await?;
            }
        }
        Ok(())
    })
    .await
}
