//! The waiting, against sockets of our own. Real SPIRE is asked by the integration tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::net::UnixListener;

use super::*;

async fn waited(socket: &Path, limit: Duration) -> (GaveUp, Duration) {
    let options = Options { socket: socket.to_owned(), timeout: Some(limit) };
    let start = Instant::now();
    (wait(&options, pending()).await.unwrap_err(), start.elapsed())
}

#[tokio::test]
async fn the_last_real_error_is_told_and_not_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let second = Duration::from_secs(1);
    let (error, took) = waited(&socket, second).await;
    assert!(error.told.contains("there is no socket"), "{error}");
    assert!((1000..1400).contains(&took.as_millis()), "{took:?}");

    // A killed agent leaves its socket behind.
    drop(UnixListener::bind(&socket).unwrap());
    let (error, _) = waited(&socket, second).await;
    assert!(error.told.contains("nobody listens"), "{error}");
    assert!(error.to_string().contains("no identity after 1"), "{error}");

    // One that takes connections and is silent: the attempt is cut off, and there is no other.
    std::fs::remove_file(&socket).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    let (error, _) = waited(&socket, second).await;
    assert!(error.told.contains("says nothing"), "{error}");

    // It fell silent after an error: that one is told.
    std::fs::remove_file(&socket).unwrap();
    let later = socket.clone();
    let falls_silent = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let listener = UnixListener::bind(later).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(listener);
    });
    let (error, _) = waited(&socket, 2 * second).await;
    assert!(error.told.contains("there is no socket"), "{error}");
    falls_silent.abort();
}

#[tokio::test]
async fn a_file_that_is_no_socket_and_one_that_talks_nonsense_mean_not_yet() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    std::fs::write(&socket, "no socket").unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (error, _) = waited(&socket, Duration::from_millis(300)).await;
    assert!(error.told.contains("nobody listens"), "{error}");
    std::fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = stream.try_write(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    let (error, _) = waited(&socket, Duration::from_secs(1)).await;
    assert!(!error.told.contains("says nothing"), "{error}");
}

#[tokio::test]
async fn it_stops_at_once_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { socket: folder.path().join("socket"), timeout: None };
    let start = Instant::now();
    let stop = tokio::time::sleep(Duration::from_millis(200));
    let error = wait(&options, stop).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    assert!(error.told.contains("there is no socket"), "{error}");
}
