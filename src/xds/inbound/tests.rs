//! Bodies in all kinds of pieces.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::convert::Infallible;

use futures::{FutureExt, StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use proptest::prelude::*;

use super::*;

/// The messages of a body that comes in these pieces and ends so, and how they end.
fn all(pieces: Vec<Vec<u8>>, end: Option<Status>) -> (Vec<Bytes>, Result<(), Status>) {
    let pieces = pieces.into_iter().map(|piece| Ok(Frame::data(Bytes::from(piece))));
    let body = StreamBody::new(stream::iter(pieces.chain(end.map(Err))).boxed());
    let mut inbound = Inbound::new(body);
    let mut messages = Vec::new();
    let ended = loop {
        match inbound.next().now_or_never().unwrap() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => break Ok(()),
            Err(status) => break Err(status),
        }
    };
    (messages, ended)
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat()
}

proptest! {
    #[test]
    fn messages_are_the_same_however_they_are_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        cuts in prop::collection::vec(0..40_usize, 0..20),
        lost in 0..12_usize,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
        let mut left = &bytes[..];
        let mut pieces = Vec::new();
        for cut in cuts {
            let (now, later) = left.split_at(cut.min(left.len()));
            pieces.push(now.to_vec());
            left = later;
        }
        pieces.push(left.to_vec());
        let (got, ended) = all(pieces, None);
        prop_assert_eq!(&got, &messages);
        prop_assert!(ended.is_ok());
        // And one that ends too early says so, unless it ends between two.
        let whole = bytes.len().saturating_sub(lost);
        let (got, ended) = all(vec![bytes[..whole].to_vec()], None);
        let said: usize = got.iter().map(|message| message.len() + HEAD).sum();
        prop_assert!(got.iter().zip(&messages).all(|(got, message)| got == message));
        prop_assert_eq!(ended.is_ok(), said == whole);
    }
}

#[test]
fn what_is_compressed_is_refused() {
    for flag in [1, 2, 255] {
        let (got, ended) = all(vec![framed(b"a"), vec![flag, 0, 0, 0, 1, 7]], None);
        assert_eq!(got, ["a"]);
        let status = ended.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().contains(&format!("the flag {flag}")), "{status}");
    }
}

#[test]
fn a_reset_ends_the_stream_and_other_errors_are_told() {
    let (got, ended) = all(vec![framed(b"a"), vec![0, 0]], Some(Status::cancelled("reset")));
    assert_eq!(got, ["a"]);
    assert!(ended.is_ok());
    let (_, ended) = all(vec![], Some(Status::deadline_exceeded("late")));
    assert_eq!(ended.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn trailers_are_no_message() {
    let body = http_body_util::Full::new(Bytes::from(framed(b"a")))
        .with_trailers(async { Some(Ok::<_, Infallible>(http::HeaderMap::new())) })
        .map_err(|never| match never {});
    let mut inbound = Inbound::new(Box::pin(body));
    assert_eq!(inbound.next().await.unwrap().unwrap(), "a");
    assert!(inbound.next().await.unwrap().is_none());
}
