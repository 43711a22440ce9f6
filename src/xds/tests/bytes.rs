//! The bytes of responses: statements 5, 26 and 29.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use proptest::prelude::*;
use prost::Message;

use super::super::encode::{Encoder, next_of};
use super::super::{Batch, Kind, Protocol, Resource, Response, Rope};

fn resource(index: usize, sizes: &[usize]) -> Resource {
    let chunks =
        sizes.iter().map(|size| Bytes::from(vec![u8::try_from(index % 251).unwrap(); *size]));
    Resource::new(Kind::Listener, format!("name-{index}"), Rope::new(chunks), None)
}

fn response(protocol: Protocol, resources: Vec<Resource>, removed: &[String]) -> Response {
    Response {
        protocol,
        kind: Some(Kind::Listener),
        type_url: Cow::Borrowed(Kind::Listener.type_url()),
        nonce: 7,
        version: "the version".into(),
        resources: resources.into(),
        removed: removed.iter().map(|name| Arc::from(name.as_str())).collect(),
    }
}

/// The chunks of a response, and its message without the gRPC prefix.
fn encode(response: &Response) -> (Vec<Bytes>, Vec<u8>) {
    let mut encoder = Encoder::new(response, "aether/1").unwrap();
    let left = encoder.left();
    let chunks: Vec<_> = std::iter::from_fn(|| encoder.next()).collect();
    let all = chunks.concat();
    assert_eq!((all.len(), encoder.left()), (left, 0));
    assert_eq!(all[0], 0);
    let len = u32::from_be_bytes(all[1..5].try_into().unwrap());
    assert_eq!(len as usize, all.len() - 5);
    (chunks, all[5..].to_vec())
}

proptest! {
    #[test]
    fn s05_what_is_encoded_is_what_a_stock_decoder_reads(
        shapes in prop::collection::vec(prop::collection::vec(0usize..40_000, 0..4), 0..12),
        removed in prop::collection::vec("[a-z/:.]{0,40}", 0..5),
    ) {
        let resources: Vec<_> = shapes.iter().enumerate().map(|(i, s)| resource(i, s)).collect();
        let (_, sotw) = encode(&response(Protocol::Sotw, resources.clone(), &[]));
        let decoded = DiscoveryResponse::decode(sotw.as_slice()).unwrap();
        prop_assert_eq!(&decoded.version_info, "the version");
        prop_assert_eq!(&decoded.nonce, "7");
        prop_assert_eq!(&decoded.type_url, Kind::Listener.type_url());
        prop_assert_eq!(&decoded.control_plane.unwrap().identifier, "aether/1");
        prop_assert_eq!(decoded.resources.len(), resources.len());
        for (any, resource) in decoded.resources.iter().zip(&resources) {
            prop_assert_eq!(&any.type_url, Kind::Listener.type_url());
            prop_assert_eq!(&any.value, &resource.body().to_bytes());
        }
        let (_, delta) = encode(&response(Protocol::Delta, resources.clone(), &removed));
        let decoded = DeltaDiscoveryResponse::decode(delta.as_slice()).unwrap();
        prop_assert_eq!(&decoded.system_version_info, "the version");
        prop_assert_eq!(&decoded.nonce, "7");
        prop_assert_eq!(&decoded.type_url, Kind::Listener.type_url());
        prop_assert_eq!(&decoded.control_plane.unwrap().identifier, "aether/1");
        prop_assert_eq!(&decoded.removed_resources, &removed);
        prop_assert_eq!(decoded.resources.len(), resources.len());
        for (got, resource) in decoded.resources.iter().zip(&resources) {
            prop_assert_eq!(&*got.name, &**resource.name());
            prop_assert_eq!(&got.version, &resource.version().to_string());
            let any = got.resource.as_ref().unwrap();
            prop_assert_eq!(&any.type_url, Kind::Listener.type_url());
            prop_assert_eq!(&any.value, &resource.body().to_bytes());
        }
    }
}

#[test]
fn s29_large_chunks_are_shared_and_small_ones_are_packed() {
    let big = Bytes::from(vec![1; 100_000]);
    let many = (0..2000).map(|i| resource(i, &[20, 30]));
    let mut resources: Vec<_> = many.collect();
    resources.push(Resource::new(Kind::Listener, "big", big.clone(), None));
    let (chunks, _) = encode(&response(Protocol::Delta, resources, &[]));
    assert!(chunks.iter().any(|chunk| chunk.as_ptr() == big.as_ptr()), "not copied");
    let packed: usize = chunks.iter().filter(|c| c.as_ptr() != big.as_ptr()).map(Bytes::len).sum();
    assert!(chunks.len() <= packed / (24 * 1024) + 3, "{} of {packed}", chunks.len());
    assert!(chunks.iter().all(|chunk| chunk.len() <= 34 * 1024 || chunk.as_ptr() == big.as_ptr()));
}

#[test]
fn s29_a_batch_that_many_send_is_encoded_once() {
    let resources: Vec<_> = (0..9000).map(|i| resource(i, &[20, 30])).collect();
    let mut response = response(Protocol::Delta, resources.clone(), &[]);
    let (_, alone) = encode(&response);
    response.resources = Batch::shared(resources);
    let ((one, shared), (two, _)) = (encode(&response), encode(&response));
    assert!(alone == shared && one.len() > 2);
    // The nonce and what else is the stream's own come first, and alone.
    assert!(one.iter().zip(&two).skip(1).all(|(a, b)| a.as_ptr() == b.as_ptr()));
    assert_ne!(one[0].as_ptr(), two[0].as_ptr());
}

#[test]
fn responses_leave_in_order_and_small_ones_together() {
    let sizes: [&[usize]; 7] = [&[10], &[20], &[40_000], &[30], &[8_000, 9_000], &[40], &[50]];
    let make = || {
        let each = sizes.iter().enumerate();
        let each = each.map(|(i, sizes)| response(Protocol::Delta, vec![resource(i, sizes)], &[]));
        each.map(|response| Encoder::new(&response, "aether/1").unwrap())
    };
    let one_by_one: Vec<u8> = make()
        .flat_map(|mut encoder| std::iter::from_fn(move || encoder.next()).flatten())
        .collect();
    let mut queue: VecDeque<_> = make().collect();
    let chunks: Vec<_> = std::iter::from_fn(|| next_of(&mut queue)).collect();
    assert!(chunks.concat() == one_by_one && queue.is_empty());
    assert_eq!(chunks.len(), 7, "{:?}", chunks.iter().map(Bytes::len).collect::<Vec<_>>());
    // One that is alone is not copied.
    let mut queue: VecDeque<_> = make().skip(2).take(1).collect();
    next_of(&mut queue);
    let big = next_of(&mut queue).unwrap();
    assert_eq!(big.len(), 40_000);
    assert_eq!(next_of(&mut queue), None);
}

#[test]
fn s26_parts_stay_below_their_limit_and_lose_nothing() {
    let sizes = [10, 400, 90, 1200, 5, 5, 5, 700];
    let all: Vec<_> = sizes.iter().enumerate().map(|(i, size)| resource(i, &[*size])).collect();
    let all = Batch::from(all);
    for limit in [1, 100, 600, 1000, 100_000] {
        let parts = all.cut(limit);
        let names: Vec<_> = parts.iter().flat_map(|p| p.iter()).map(Resource::name).collect();
        assert_eq!(names, all.iter().map(Resource::name).collect::<Vec<_>>());
        for part in &parts {
            let (_, bytes) = encode(&response(Protocol::Delta, part.to_vec(), &[]));
            assert!(part.len() == 1 || bytes.len() <= limit + 200, "{} {limit}", bytes.len());
        }
    }
    assert_eq!(Batch::default().cut(10).len(), 1);
}
