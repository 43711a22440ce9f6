//! A WebSocket client.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::PATIENCE;

/// Opens a WebSocket to `ws://<host><path>` at this address, has each text echoed, and returns it, still open.
pub async fn websocket(
    address: SocketAddr,
    host: &str,
    path: &str,
    texts: &[&str],
) -> Result<WebSocketStream<TcpStream>> {
    let talk = async {
        let stream = TcpStream::connect(address).await?;
        let url = format!("ws://{host}{path}");
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await?;
        for text in texts {
            socket.send(Message::text(*text)).await?;
            let answer = socket.next().await.context("closed")??;
            anyhow::ensure!(answer == Message::text(*text), "{text:?} came back as {answer:?}");
        }
        Ok(socket)
    };
    timeout(PATIENCE, talk).await.context("no answer")?
}
