//! Responses as bytes: gRPC messages in chunks, most of them shared with every other stream.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::request::Protocol;
use super::response::Response;
use super::{Batch, Resource, field};

/// Chunks of at least this many bytes go through as they are; smaller ones are packed together,
/// since a frame of its own for each would cost more than copying it.
const LARGE: usize = 8 * 1024;

/// About as many bytes are packed into one buffer.
const PACK: usize = 32 * 1024;

/// About as many bytes of what many streams send are packed into one buffer, which they share.
const PAGE: usize = 128 * 1024;

/// The bytes of one response, made when they are asked for: a stream that does not read holds
/// references to resources and no copy.
#[derive(Debug)]
pub(super) struct Encoder {
    /// What stands before the resources; taken with the first buffer.
    head: Bytes,
    body: Body,
    left: usize,
}

/// The resources of a response.
#[derive(Debug)]
enum Body {
    /// Encoded already, once for all who send them; and which page is next.
    Pages(Arc<[Bytes]>, usize),
    /// To be encoded.
    Packer(Packer),
}

impl Encoder {
    /// The encoder of a response; `None` where a gRPC message could not hold it (4 GiB).
    pub(super) fn new(response: &Response, control_plane: &str) -> Option<Self> {
        let fields = fields(response, control_plane);
        let protocol = response.protocol;
        let size = response.resources.size(protocol);
        let len = u32::try_from(fields.len() + size).ok()?;
        // A gRPC message: not compressed, its length, and itself.
        let mut head = BytesMut::with_capacity(fields.len() + 5);
        head.put_u8(0);
        head.put_u32(len);
        head.put_slice(&fields);
        let left = head.len() + size;
        let body = match response.resources.pages(protocol) {
            Some(pages) => Body::Pages(pages.clone(), 0),
            None => Body::Packer(Packer::new(response.resources.clone(), protocol)),
        };
        Some(Self { head: head.freeze(), body, left })
    }

    /// The bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The next bytes; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let head = std::mem::take(&mut self.head);
        let bytes = match &mut self.body {
            Body::Packer(packer) => packer.pack(&head, self.left, PACK),
            Body::Pages(..) if !head.is_empty() => head,
            Body::Pages(pages, next) => {
                let page = pages.get(*next).cloned().unwrap_or_default();
                *next += 1;
                page
            }
        };
        self.left = self.left.saturating_sub(bytes.len());
        (!bytes.is_empty()).then_some(bytes)
    }
}

/// The next bytes of some responses; `None` at the end of all. Small ones leave together: a frame of
/// its own for each would cost a system call.
pub(super) fn next_of(responses: &mut VecDeque<Encoder>) -> Option<Bytes> {
    let mut together = BytesMut::new();
    loop {
        let others = responses.len() > 1 || !together.is_empty();
        let Some(first) = responses.front_mut() else { break };
        let left = first.left();
        if left > 0 && (left > LARGE || together.len() + left > PACK || !others) {
            if together.is_empty() {
                return first.next();
            }
            break;
        }
        while let Some(bytes) = first.next() {
            together.extend_from_slice(&bytes);
        }
        responses.pop_front();
    }
    (!together.is_empty()).then(|| together.freeze())
}

/// All bytes of the resources of a response.
pub(super) fn encoded(batch: &Batch, protocol: Protocol) -> Vec<Bytes> {
    let mut left = batch.size(protocol);
    let mut packer = Packer::new(batch.clone(), protocol);
    let page = || {
        let page = packer.pack(&[], left, PAGE);
        left = left.saturating_sub(page.len());
        (!page.is_empty()).then_some(page)
    };
    std::iter::from_fn(page).collect()
}

/// Goes through the chunks of resources and packs them.
#[derive(Debug)]
struct Packer {
    protocol: Protocol,
    resources: Batch,
    /// The resource that is next, and which of its chunks; chunk 0 is what announces it.
    at: (usize, usize),
}

impl Packer {
    fn new(resources: Batch, protocol: Protocol) -> Self {
        Self { protocol, resources, at: (0, 0) }
    }

    /// The next bytes, about `pack` of the `left` ones, after a head; empty at the end.
    fn pack(&mut self, head: &[u8], left: usize, pack: usize) -> Bytes {
        let mut out = BytesMut::with_capacity(left.min(pack + head.len()));
        out.put_slice(head);
        while let Some(resource) = self.resources.get(self.at.0) {
            let Some(before) = self.at.1.checked_sub(1) else {
                announce(resource, self.protocol, &mut out);
                self.at.1 = 1;
                continue;
            };
            let Some(chunk) = resource.body().chunks().get(before) else {
                self.at = (self.at.0 + 1, 0);
                if out.len() >= pack {
                    break;
                }
                continue;
            };
            if chunk.len() >= LARGE {
                if out.is_empty() {
                    self.at.1 += 1;
                    return chunk.clone();
                }
                break;
            }
            if out.len() + chunk.len() > pack && !out.is_empty() {
                break;
            }
            out.put_slice(chunk);
            self.at.1 += 1;
        }
        out.freeze()
    }
}

/// All fields but the resources. Protobuf lets fields stand in any order.
fn fields(response: &Response, control_plane: &str) -> BytesMut {
    // Of `DiscoveryResponse` and of `DeltaDiscoveryResponse`, in discovery.proto.
    let (url, nonce, plane) = match response.protocol {
        Protocol::Sotw => (4, 5, 6),
        Protocol::Delta => (4, 5, 7),
    };
    let removed: usize = response.removed.iter().map(|name| name.len() + 6).sum();
    let mut out = BytesMut::with_capacity(160 + control_plane.len() + removed);
    field::put(1, response.version.as_bytes(), &mut out);
    field::put(url, response.type_url.as_bytes(), &mut out);
    field::put(nonce, response.nonce.to_string().as_bytes(), &mut out);
    // ControlPlane.identifier is field 1.
    field::put(plane, &field::only(1, control_plane.as_bytes()), &mut out);
    for name in response.removed.iter() {
        field::put(6, name.as_bytes(), &mut out);
    }
    out
}

/// What stands before a resource's body: as an `Any` in one protocol, as an `Any` in a `Resource`
/// in the other; field 2 of the response in both.
fn announce(resource: &Resource, protocol: Protocol, out: &mut BytesMut) {
    let any = resource.any_len();
    out.reserve(resource.any_head().len() + resource.delta_head().len() + 32);
    if protocol == Protocol::Delta {
        let head = resource.delta_head();
        field::announce(2, head.len() + announced(any) + any, out);
        out.put_slice(head);
    }
    field::announce(2, any, out);
    out.put_slice(resource.any_head());
}

/// The bytes of a resource in a response.
pub(super) fn size(resource: &Resource, protocol: Protocol) -> usize {
    let any = resource.any_len();
    let any = announced(any) + any;
    match protocol {
        Protocol::Sotw => any,
        Protocol::Delta => {
            let all = resource.delta_head().len() + any;
            announced(all) + all
        }
    }
}

/// The bytes of the key and length of a field below 16.
fn announced(len: usize) -> usize {
    1 + prost::encoding::encoded_len_varint(len as u64)
}
