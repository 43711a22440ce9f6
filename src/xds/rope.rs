//! Ropes: encoded messages as short runs of shared chunks.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint};

/// Bytes in chunks that many messages share. Cloning copies no byte.
#[derive(Debug, Clone, Default)]
pub struct Rope {
    chunks: Arc<[Bytes]>,
    len: usize,
}

impl Rope {
    /// A rope of chunks; empty ones are left out.
    pub fn new(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        let chunks: Arc<[Bytes]> = chunks.into_iter().filter(|c| !c.is_empty()).collect();
        let len = chunks.iter().map(Bytes::len).sum();
        Self { chunks, len }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunks, in order.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// One contiguous copy: for tools and tests, never on the way to a proxy.
    pub fn to_bytes(&self) -> Bytes {
        match self.chunks() {
            [one] => one.clone(),
            many => {
                let mut all = BytesMut::with_capacity(self.len);
                for chunk in many {
                    all.put_slice(chunk);
                }
                all.freeze()
            }
        }
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        Self::new([bytes])
    }
}

impl From<Vec<u8>> for Rope {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Bytes::from(bytes))
    }
}

/// Protobuf fields, written one by one. Fields of a message concatenate, which is what lets a
/// small head stand before a tail that all share.
pub mod field {
    use super::{BufMut, Bytes, BytesMut, WireType, encode_key, encode_varint};

    /// The key and length that announce `len` bytes in field `tag`; the bytes follow.
    pub fn announce(tag: u32, len: usize, out: &mut BytesMut) {
        encode_key(tag, WireType::LengthDelimited, out);
        encode_varint(len as u64, out);
    }

    /// A whole length-delimited field.
    pub fn put(tag: u32, value: &[u8], out: &mut BytesMut) {
        announce(tag, value.len(), out);
        out.put_slice(value);
    }

    /// A string or bytes field alone.
    pub fn only(tag: u32, value: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(value.len() + 12);
        put(tag, value, &mut out);
        out.freeze()
    }
}
