//! The socket as one that takes a few bytes now and then sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A socket that takes so many bytes by each call, nothing by every fourth where it is slow, and
/// after so many calls fails.
#[derive(Debug)]
struct Socket {
    most: usize,
    slow: bool,
    calls: usize,
    fails_at: usize,
    got: Vec<u8>,
    shut: bool,
}

fn socket(most: usize) -> Socket {
    Socket { most, slow: false, calls: 0, fails_at: usize::MAX, got: vec![], shut: false }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls += 1;
        if self.calls >= self.fails_at {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.slow && self.calls.is_multiple_of(4) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let taken = bytes.len().min(self.most);
        self.got.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}

/// Drives what writes to the socket as a connection is driven.
async fn drive<F: Future>(cork: &Cork<Socket>, connection: F) -> F::Output {
    let mut connection = pin!(connection);
    poll_fn(|cx| cork.poll(connection.as_mut(), cx)).await
}

#[tokio::test]
async fn what_a_turn_writes_leaves_in_one_call_and_nothing_stays_behind() {
    let cork = Cork::new(socket(usize::MAX));
    let mut io = cork.clone();
    drive(&cork, async {
        for frame in 0..4 {
            io.write_all(&[frame; 9]).await.unwrap();
            io.write_all(&vec![frame; 9_000]).await.unwrap();
            io.flush().await.unwrap();
        }
        assert_eq!(io.gathered().io.calls, 0);
        tokio::task::yield_now().await;
        let gathered = io.gathered();
        assert_eq!((gathered.io.calls, gathered.io.got.len()), (1, 4 * 9_009));
        // An idle connection holds no buffer.
        assert_eq!(gathered.bytes.capacity(), 0);
    })
    .await;
}

#[tokio::test]
async fn much_leaves_before_the_turn_ends() {
    let cork = Cork::new(socket(usize::MAX));
    let mut io = cork.clone();
    drive(&cork, async {
        io.write_all(&vec![7; ROOM]).await.unwrap();
        assert_eq!(io.gathered().io.calls, 0);
        io.write_all(&[8]).await.unwrap();
        let gathered = io.gathered();
        assert_eq!((gathered.io.got.len(), gathered.bytes.len()), (ROOM, 1));
    })
    .await;
}

#[tokio::test]
async fn a_socket_that_fails_is_heard_of_by_who_reads() {
    let cork = Cork::new(Socket { fails_at: 1, ..socket(1) });
    let mut io = cork.clone();
    let ended = drive(&cork, async {
        io.write_all(b"bytes").await.unwrap();
        io.read_u8().await
    });
    let ended = tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_socket_that_takes_nothing_more_is_no_loop() {
    let cork = Cork::new(socket(0));
    let mut io = cork.clone();
    let ended = drive(&cork, async {
        io.write_all(b"bytes").await.unwrap();
        io.read_u8().await
    });
    let ended = tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::WriteZero);
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(
        writes in prop::collection::vec(0..40_000_usize, 0..12),
        most in 1..100_000_usize,
        slow: bool,
        pauses: u16,
    ) {
        let most = most.max(500);
        let cork = Cork::new(Socket { slow, ..socket(most) });
        let mut io = cork.clone();
        let wanted: Vec<u8> = (0..=250).cycle().take(writes.iter().sum()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(drive(&cork, async {
            let mut left = &wanted[..];
            for (n, length) in writes.iter().enumerate() {
                let (now, later) = left.split_at(*length);
                left = later;
                if n % 2 == 0 {
                    io.write_all(now).await.unwrap();
                } else {
                    let (one, two) = now.split_at(length / 3);
                    let mut sum = io.write_vectored(&[one, two].map(io::IoSlice::new)).await.unwrap();
                    while sum < *length {
                        sum += io.write(&now[sum..]).await.unwrap();
                    }
                }
                if pauses >> n & 1 == 1 {
                    tokio::task::yield_now().await;
                }
            }
            io.shutdown().await.unwrap();
        }));
        let gathered = cork.gathered();
        prop_assert!(gathered.io.got == wanted);
        prop_assert!(gathered.io.shut && gathered.bytes.is_empty());
    }
}
