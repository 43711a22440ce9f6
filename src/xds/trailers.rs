//! The status at the end of a stream.

use http::{HeaderMap, HeaderValue};
use tonic::Status;

/// A status as trailers. Envoy logs its message as it is on the wire, so only what must be is
/// escaped there (by gRPC's rule: what is not printable ASCII, and `%`), and not spaces and quotes
/// as well.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", HeaderValue::from_static("13"));
    }
    let mut message = String::with_capacity(status.message().len());
    for byte in status.message().bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => message.push(byte.into()),
            _ => message.extend(format!("%{byte:02X}").chars()),
        }
    }
    if !message.is_empty()
        && let Ok(message) = HeaderValue::try_from(message)
    {
        trailers.insert("grpc-message", message);
    }
    trailers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Status, trailers};

    #[test]
    fn a_message_can_be_read_on_the_wire_and_is_the_same_behind_it() {
        for (message, wire) in [
            ("the id \"a b\" is <none>", "the id \"a b\" is <none>"),
            ("100% é\n", "100%25 %C3%A9%0A"),
        ] {
            let trailers = trailers(&Status::invalid_argument(message));
            assert_eq!(trailers.get("grpc-message").unwrap(), wire);
            assert_eq!(trailers.get("grpc-status").unwrap(), "3");
            assert_eq!(Status::from_header_map(&trailers).unwrap().message(), message);
        }
        assert!(trailers(&Status::ok("")).get("grpc-message").is_none());
    }
}
