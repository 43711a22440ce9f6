//! The fields of encoded messages, read where they lie.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Why bytes are no request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum Malformed {
    /// They are no protobuf message.
    #[error("the request is no protobuf message: {0}")]
    Wire(String),
    /// A field ends after the message does.
    #[error("the request ends within field {0}")]
    Short(u32),
    /// A string that is none.
    #[error("field {0} of the request is not UTF-8")]
    Text(u32),
}

/// The length-delimited fields of a message, in order; others are skipped.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        let wire = |error: prost::DecodeError| Malformed::Wire(error.to_string());
        while !self.0.is_empty() {
            // Most have a number below 16 and a length below 128: one byte each.
            if let [key @ 8..=0x7f, len @ 0..=0x7f, rest @ ..] = self.0
                && key & 7 == WireType::LengthDelimited as u8
                && let Some((value, rest)) = rest.split_at_checked(usize::from(*len))
            {
                self.0 = rest;
                return Ok(Some((u32::from(key >> 3), value)));
            }
            let (tag, wire_type) = decode_key(&mut self.0).map_err(wire)?;
            if wire_type != WireType::LengthDelimited {
                skip_field(wire_type, tag, &mut self.0, DecodeContext::default()).map_err(wire)?;
                continue;
            }
            let len = usize::try_from(decode_varint(&mut self.0).map_err(wire)?).ok();
            let (value, rest) =
                len.and_then(|len| self.0.split_at_checked(len)).ok_or(Malformed::Short(tag))?;
            self.0 = rest;
            return Ok(Some((tag, value)));
        }
        Ok(None)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.field().transpose()
    }
}

/// A field as a string.
pub(super) fn text(tag: u32, value: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(value).map_err(|_| Malformed::Text(tag))
}

/// The field of a message that is its only or last one of a number; empty where there is none.
pub(super) fn inner(message: &[u8], wanted: u32) -> Result<&str, Malformed> {
    let mut found = "";
    for field in Fields(message) {
        let (tag, value) = field?;
        if tag == wanted {
            found = text(tag, value)?;
        }
    }
    Ok(found)
}

/// An entry of a map: the key is field 1, the value field 2.
pub(super) fn pair(entry: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut key, mut value) = ("", "");
    for field in Fields(entry) {
        match field? {
            (1, bytes) => key = text(1, bytes)?,
            (2, bytes) => value = text(2, bytes)?,
            _ => {}
        }
    }
    Ok((key, value))
}
