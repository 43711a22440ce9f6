//! The writes of a connection, gathered into few system calls.
//!
//! A peer takes frames of 16 KiB, and the HTTP/2 library hands the socket one after the other: 1,000
//! proxies that fetch some megabytes each would cost hundreds of thousands of system calls, most of
//! the server's time. What one turn of the connection writes is put together here and leaves at the
//! end of the turn, or earlier where it is much.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(test)]
mod tests;

/// How many bytes are gathered before they leave.
const ROOM: usize = 64 << 10;

thread_local! {
    /// A buffer that no connection needs: those of idle ones would be most of their memory.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A socket whose writes are gathered. Clones are the same socket: the HTTP/2 library owns one of
/// them, and who drives the connection holds the other. Both are of one task, so that neither ever
/// waits for the other's lock.
#[derive(Debug)]
pub(super) struct Cork<I>(Arc<Mutex<Gathered<I>>>);

impl<I> Clone for Cork<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Cork<I> {
    pub(super) fn new(io: I) -> Self {
        let (bytes, written, failed) = (Vec::new(), 0, None);
        Self(Arc::new(Mutex::new(Gathered { io, bytes, written, failed })))
    }

    /// One turn of the connection that writes to this socket; what it wrote leaves at the end.
    pub(super) fn poll<F: Future>(
        &self,
        connection: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let polled = connection.poll(cx);
        if polled.is_pending() {
            let mut gathered = self.gathered();
            if let Poll::Ready(Err(error)) = gathered.leave(cx) {
                // The connection hears of it when it next reads or writes: at once.
                gathered.failed = Some(error);
                cx.waker().wake_by_ref();
            }
        }
        polled
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket, and what is to be written to it.
#[derive(Debug)]
struct Gathered<I> {
    io: I,
    bytes: Vec<u8>,
    /// How many of the bytes the socket has taken.
    written: usize,
    failed: Option<io::Error>,
}

impl<I: AsyncWrite + Unpin> Gathered<I> {
    /// Takes what there is room for of some slices, after making room where there is none.
    fn gather<'a>(
        &mut self,
        slices: impl Iterator<Item = &'a [u8]>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        if self.bytes.len() >= ROOM {
            ready!(self.write_out(cx))?;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = SPARE.take();
            self.bytes.reserve_exact(ROOM);
        }
        let before = self.bytes.len();
        for slice in slices {
            let taken = slice.len().min(ROOM.saturating_sub(self.bytes.len()));
            self.bytes.extend_from_slice(slice.get(..taken).unwrap_or_default());
            if taken < slice.len() {
                break;
            }
        }
        Poll::Ready(Ok(self.bytes.len() - before))
    }

    /// Hands the socket all that was gathered.
    fn write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(left) = self.bytes.get(self.written..).filter(|left| !left.is_empty()) {
            match ready!(Pin::new(&mut self.io).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.written += taken,
            }
        }
        self.written = 0;
        self.bytes.clear();
        Poll::Ready(Ok(()))
    }

    /// The same, down to the network, and the buffer goes to whoever needs one next.
    fn leave(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_out(cx))?;
        if self.bytes.capacity() > 0 {
            SPARE.set(std::mem::take(&mut self.bytes));
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Cork<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut gathered = self.gathered();
        gathered.check()?;
        Pin::new(&mut gathered.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Cork<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.gathered().gather(std::iter::once(bytes), cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.gathered().gather(slices.iter().map(|slice| &**slice), cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing: the library asks for it after each frame, and the turn that it is in ends soon.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.gathered().check())
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = self.gathered();
        gathered.check()?;
        ready!(gathered.leave(cx))?;
        Pin::new(&mut gathered.io).poll_shutdown(cx)
    }
}
