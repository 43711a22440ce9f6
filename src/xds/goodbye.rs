//! Last words to a peer that is not served: HTTP/2's `GOAWAY`, which needs nothing of its side.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long the peer has to hear them.
const HEARING: Duration = Duration::from_secs(1);

/// Why, in numbers of RFC 9113, section 7.
#[derive(Debug, Clone, Copy)]
pub(super) enum Code {
    /// It asks for too much.
    EnhanceYourCalm = 0xb,
    /// It has to use TLS.
    InadequateSecurity = 0xc,
}

/// The two frames: our settings, which come first, and the words.
fn frames(code: Code, words: &str) -> Vec<u8> {
    let words = words.as_bytes().get(..1024).unwrap_or(words.as_bytes());
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let length = u32::try_from(8 + words.len()).unwrap_or_default();
    frames.extend(length.to_be_bytes().iter().skip(1));
    // GOAWAY, no flags, on the connection itself; no stream was taken in.
    frames.extend([7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frames.extend((code as u32).to_be_bytes());
    frames.extend(words);
    frames
}

/// Says them, and waits for the peer to close: a socket that is closed over unread bytes is reset,
/// and what was said is lost.
pub(super) async fn goodbye(mut stream: TcpStream, code: Code, words: &str) {
    let frames = frames(code, words);
    let say = async {
        stream.write_all(&frames).await?;
        stream.shutdown().await?;
        let mut heard = [0; 4096];
        while stream.read(&mut heard).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whether it heard them is its own affair.
    let _ = timeout(HEARING, say).await;
}
