//! A decoder that looks at how much there is to decode before it makes a value of it.
//!
//! Two bytes on the wire can be an empty name, and a name in memory has a few dozen.

use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder};

use super::{Denial, Limits};

/// Fields that hold a name: `resource_names` of a `DiscoveryRequest`, and `resource_names_subscribe`
/// and `…_unsubscribe` of a `DeltaDiscoveryRequest`. What else has these numbers is as short.
const NAMES: [u32; 2] = [3, 4];
/// `initial_resource_versions`: an entry holds a name and a version.
const VERSIONS: u32 = 5;

/// A decoder within limits.
pub(in crate::xds) struct Counted<D> {
    pub(in crate::xds) inner: D,
    pub(in crate::xds) limits: Limits,
    pub(in crate::xds) refused: Box<dyn Fn(Denial) -> Status + Send + Sync>,
}

impl<D: Decoder<Error = Status>> Decoder for Counted<D> {
    type Item = D::Item;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<D::Item>, Status> {
        // The whole message stands in one piece.
        if let Err(reason) = check(src.chunk(), &self.limits) {
            return Err((self.refused)(reason));
        }
        self.inner.decode(src)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.inner.buffer_settings()
    }
}

/// Goes through the fields of a message, not into them. What cannot be read is left to the decoder.
fn check(mut message: &[u8], limits: &Limits) -> Result<(), Denial> {
    let mut fields = 0_usize;
    while message.has_remaining() {
        let Ok((tag, wire)) = decode_key(&mut message) else { return Ok(()) };
        let length = match wire {
            WireType::LengthDelimited => decode_varint(&mut message),
            WireType::Varint => decode_varint(&mut message).map(|_| 0),
            WireType::SixtyFourBit => Ok(8),
            WireType::ThirtyTwoBit => Ok(4),
            WireType::StartGroup | WireType::EndGroup => return Ok(()),
        };
        let length = length.ok().and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|length| *length <= message.remaining()) else {
            return Ok(());
        };
        let most = match tag {
            tag if NAMES.contains(&tag) => limits.name,
            VERSIONS => limits.name.saturating_mul(2),
            _ => usize::MAX,
        };
        if length > most {
            return Err(Denial::Name);
        }
        message.advance(length);
        fields += 1;
        // A few fields are no names.
        if fields > limits.names.saturating_add(8) {
            return Err(Denial::Names);
        }
    }
    Ok(())
}
