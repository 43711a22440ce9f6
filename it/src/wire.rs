//! HTTP/1 by the byte, for both ends: what a library would normalise is what the tests compare.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Nothing that a test sends is longer; a peer that never ends does not fill the memory.
const LONGEST: usize = 64 << 20;

/// The first part of a message: its start line and fields, exactly as they came, the empty line included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head(pub Vec<u8>);

/// How a body's end is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// There is none.
    #[default]
    Absent,
    /// By content-length.
    Length(usize),
    /// By chunks; trailers may follow.
    Chunked,
    /// By the end of the connection (answers alone).
    Close,
}

/// A request or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Start line and fields, as they came.
    pub head: Head,
    /// How the body was framed.
    pub framing: Framing,
    /// The body, without the framing.
    pub body: Vec<u8>,
    /// The trailer lines, as they came.
    pub trailers: Head,
}

impl Head {
    /// The start line.
    pub fn start_line(&self) -> String {
        String::from_utf8_lossy(&self.0).lines().next().unwrap_or_default().to_owned()
    }

    /// The status code of an answer.
    pub fn status(&self) -> Result<u16> {
        let line = self.start_line();
        let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.with_context(|| format!("{line:?} is no status line"))
    }

    /// The fields, in their order and letter case.
    pub fn fields(&self) -> Vec<(String, String)> {
        let lossy = String::from_utf8_lossy(&self.0).into_owned();
        let pairs = lossy.lines().filter_map(|line| line.split_once(':'));
        // The start line of an absolute URI holds a colon too, after a space.
        let fields = pairs.filter(|(name, _)| !name.contains(' '));
        fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    }

    /// The first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.fields().into_iter();
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// How the body of this head is framed; `end` where neither length nor chunks tell.
    fn framing(&self, end: Framing) -> Result<Framing> {
        if self.field("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            return Ok(Framing::Chunked);
        }
        match self.field("content-length") {
            Some(length) => Ok(Framing::Length(length.parse().context("content-length")?)),
            None => Ok(end),
        }
    }
}

/// A connection on which HTTP/1 messages are read, and bytes written.
#[derive(Debug)]
pub struct Wire<S> {
    stream: S,
    read: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Over this stream.
    pub fn new(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// The stream, and what was read of it and not used.
    pub fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.read)
    }

    /// Writes these bytes as they are.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await?;
        Ok(self.stream.flush().await?)
    }

    /// Ends our direction of the connection.
    pub async fn finish(&mut self) -> Result<()> {
        Ok(self.stream.shutdown().await?)
    }

    /// Waits for the first byte of whatever comes next; false at the end of the connection.
    pub async fn something(&mut self) -> Result<bool> {
        Ok(!self.read.is_empty() || self.more().await?)
    }

    /// The next head, or none at an end of the connection between messages.
    pub async fn head(&mut self) -> Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                return Ok(Some(Head(self.take(end + 4))));
            }
            if !self.more().await? {
                if self.read.is_empty() {
                    return Ok(None);
                }
                bail!(
                    "the connection ended inside a head: {:?}",
                    String::from_utf8_lossy(&self.read)
                );
            }
        }
    }

    /// The rest of a request whose head this is.
    pub async fn request_body(&mut self, head: Head) -> Result<Message> {
        let framing = head.framing(Framing::Absent)?;
        self.body(head, framing).await
    }

    /// The rest of an answer whose head this is; `to_head` where a HEAD request asked.
    pub async fn answer_body(&mut self, head: Head, to_head: bool) -> Result<Message> {
        let bodiless = to_head || matches!(head.status()?, 100..=199 | 204 | 304);
        let framing = if bodiless { Framing::Absent } else { head.framing(Framing::Close)? };
        self.body(head, framing).await
    }

    async fn body(&mut self, head: Head, framing: Framing) -> Result<Message> {
        let mut message = Message { head, framing, ..Message::default() };
        match framing {
            Framing::Absent => {}
            Framing::Length(length) => message.body = self.exactly(length).await?,
            Framing::Close => {
                while self.more().await? {}
                message.body = std::mem::take(&mut self.read);
            }
            Framing::Chunked => loop {
                let line = self.line().await?;
                let text = String::from_utf8_lossy(&line);
                let size = text.trim_end().split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(size, 16)
                    .with_context(|| format!("{text:?} is no chunk size"))?;
                if size == 0 {
                    message.trailers = self.trailers().await?;
                    break;
                }
                message.body.extend(self.exactly(size).await?);
                self.line().await?;
            },
        }
        Ok(message)
    }

    async fn trailers(&mut self) -> Result<Head> {
        let mut trailers = Vec::new();
        loop {
            let line = self.line().await?;
            if line == b"\r\n" {
                return Ok(Head(trailers));
            }
            trailers.extend(line);
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n") {
                return Ok(self.take(end + 2));
            }
            if !self.more().await? {
                bail!("the connection ended inside a line");
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.read.len() < length {
            if !self.more().await? {
                bail!("the connection ended after {} bytes of {length}", self.read.len());
            }
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.read.split_off(length.min(self.read.len()));
        std::mem::replace(&mut self.read, rest)
    }

    async fn more(&mut self) -> Result<bool> {
        if self.read.len() > LONGEST {
            bail!("a message of more than {LONGEST} bytes");
        }
        self.read.reserve(64 << 10);
        Ok(self.stream.read_buf(&mut self.read).await? > 0)
    }
}

/// Where these bytes first stand.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
