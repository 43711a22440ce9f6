//! Requests as they stand on the wire.
//!
//! An Envoy tells hundreds of its extensions in `node`, and thousands of names and versions when it
//! connects again. What nobody asks for is skipped, and the lists stay the bytes that came. Field
//! numbers are those of `envoy/service/discovery/v3/discovery.proto`.

use bytes::Bytes;

use super::fields::{Fields, Malformed, inner, pair, text};
use super::limits::{Denial, Limits, Names};
use super::lists::Tally;
use super::request::{Protocol, Request, Wants};
use super::{Versions, Words};

/// The numbers of the fields that are read; 0 for one that the protocol lacks. The version of a
/// state-of-the-world request is not among them: a refusal is never inferred from it.
struct Tags {
    node: u32,
    url: u32,
    nonce: u32,
    error: u32,
    names: u32,
    unsubscribe: u32,
    initial: u32,
}

/// `DiscoveryRequest`.
const SOTW: Tags =
    Tags { node: 2, names: 3, url: 4, nonce: 5, error: 6, unsubscribe: 0, initial: 0 };
/// `DeltaDiscoveryRequest`.
const DELTA: Tags =
    Tags { node: 1, url: 2, names: 3, unsubscribe: 4, initial: 5, nonce: 6, error: 7 };

/// Why a message is not taken as a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is none.
    Malformed(Malformed),
    /// It holds more than it may.
    Denied(Denial),
}

impl From<Malformed> for Unread {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Denial> for Unread {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// Reads a request. Of a field that must stand there once the last one counts. All strings in it are
/// looked at here, so that the lists can be trusted later.
pub(super) fn read(
    protocol: Protocol,
    message: &Bytes,
    limits: &Limits,
) -> Result<Request, Unread> {
    let tags = match protocol {
        Protocol::Sotw => SOTW,
        Protocol::Delta => DELTA,
    };
    let mut request = Request::default();
    let mut seen = Names::within(limits);
    let [mut names, mut unsubscribe, mut initial] = [Tally::default(); 3];
    for field in Fields(message) {
        let (tag, value) = field?;
        if tag == tags.names {
            seen.name(value)?;
            names.name(text(tag, value)?);
        } else if tag == tags.unsubscribe {
            seen.name(value)?;
            unsubscribe.name(text(tag, value)?);
        } else if tag == tags.initial {
            seen.entry(value)?;
            let (name, version) = pair(value)?;
            initial.held(name, version);
        } else if tag == tags.node {
            // Node.id is field 1.
            request.node = Some(inner(value, 1)?.to_owned());
        } else if tag == tags.url {
            text(tag, value)?.clone_into(&mut request.type_url);
        } else if tag == tags.nonce {
            text(tag, value)?.clone_into(&mut request.nonce);
        } else if tag == tags.error {
            // Status.message is field 2.
            request.error = Some(inner(value, 2)?.to_owned());
        }
    }
    request.wants = match protocol {
        Protocol::Sotw => Wants::All(Words::fields(message, tags.names, names)),
        Protocol::Delta => Wants::Change {
            subscribe: Words::fields(message, tags.names, names),
            unsubscribe: Words::fields(message, tags.unsubscribe, unsubscribe),
            initial: Versions::fields(message, tags.initial, initial),
        },
    };
    Ok(request)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use envoy_types::pb::envoy::config::core::v3::Node;
    use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
    use envoy_types::pb::google::rpc::Status as Rpc;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn read(protocol: Protocol, bytes: Vec<u8>) -> Result<Request, Unread> {
        super::read(protocol, &bytes.into(), &Limits::default())
    }

    fn node(id: &str) -> Node {
        Node { id: id.into(), cluster: "c".into(), ..Default::default() }
    }

    fn error(words: &str) -> Rpc {
        Rpc { code: 13, message: words.into(), ..Default::default() }
    }

    proptest! {
        #[test]
        fn what_a_stock_client_writes_is_read(
            id in "[a-z/é]{0,20}",
            names in prop::collection::vec("[a-z*é]{0,9}", 0..9),
            others in prop::collection::vec("[a-z*]{0,9}", 0..9),
            held in prop::collection::hash_map("[a-z]{0,9}", "[0-9a-f]{0,16}", 0..9),
            refused in prop::option::of("[a-z ]{0,9}"),
        ) {
            let sotw = DiscoveryRequest {
                version_info: "7".into(),
                node: Some(node(&id)),
                resource_names: names.clone(),
                type_url: "url".into(),
                response_nonce: "5".into(),
                error_detail: refused.as_deref().map(error),
                ..Default::default()
            };
            let got = read(Protocol::Sotw, sotw.encode_to_vec()).unwrap();
            prop_assert_eq!(got.wants, Wants::All(names.iter().collect()));
            prop_assert_eq!(got.node, Some(id.clone()));
            prop_assert_eq!((&*got.type_url, &*got.nonce, got.error), ("url", "5", refused.clone()));
            let delta = DeltaDiscoveryRequest {
                node: Some(node(&id)),
                type_url: "url".into(),
                resource_names_subscribe: names.clone(),
                resource_names_unsubscribe: others.clone(),
                initial_resource_versions: held.clone(),
                response_nonce: "5".into(),
                error_detail: refused.as_deref().map(error),
                ..Default::default()
            };
            let got = read(Protocol::Delta, delta.encode_to_vec()).unwrap();
            let Wants::Change { subscribe, unsubscribe, initial } = got.wants else { panic!() };
            prop_assert_eq!(subscribe, names.iter().collect());
            prop_assert_eq!(unsubscribe, others.iter().collect());
            let initial = initial.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(held, initial);
            prop_assert_eq!(got.node, Some(id));
            prop_assert_eq!((&*got.type_url, &*got.nonce, got.error), ("url", "5", refused));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for protocol in [Protocol::Sotw, Protocol::Delta] {
                let ours = read(protocol, bytes.clone());
                let stock = match protocol {
                    Protocol::Sotw => DiscoveryRequest::decode(&*bytes).is_ok(),
                    Protocol::Delta => DeltaDiscoveryRequest::decode(&*bytes).is_ok(),
                };
                // Fields that are not read may be anything.
                prop_assert!(!stock || ours.is_ok(), "{ours:?}");
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let read = |bytes: &[u8]| match read(Protocol::Delta, bytes.to_vec()).unwrap_err() {
            Unread::Malformed(why) => why,
            Unread::Denied(why) => panic!("{why:?}"),
        };
        assert_eq!(read(&[0x1a, 2, b'a']), Malformed::Short(3));
        assert_eq!(read(&[0x1a, 1, 0xff]), Malformed::Text(3));
        assert_eq!(read(&[0x2a, 3, 0x0a, 1, 0xff]), Malformed::Text(1));
        assert!(matches!(read(&[0xff]), Malformed::Wire(_)));
        assert!(matches!(read(&[0x02, 0]), Malformed::Wire(_)));
    }

    #[test]
    fn names_are_counted_and_measured_in_every_list() {
        let limits = Limits { names: 3, name: 4, ..Limits::default() };
        let read = |request: &DeltaDiscoveryRequest| {
            super::read(Protocol::Delta, &request.encode_to_vec().into(), &limits).map(drop)
        };
        let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let request = |one: &[&str], two: &[&str], held: &[(&str, &str)]| DeltaDiscoveryRequest {
            type_url: "longer than a name".into(),
            resource_names_subscribe: strings(one),
            resource_names_unsubscribe: strings(two),
            initial_resource_versions: held
                .iter()
                .map(|(n, v)| ((*n).into(), (*v).into()))
                .collect(),
            ..Default::default()
        };
        assert_eq!(read(&request(&["four"], &["four"], &[("a", "1")])), Ok(()));
        for (one, two, held) in [
            (&["a", "b"][..], &["c"][..], &[("d", "1")][..]),
            (&["a", "b", "c", "d"], &[], &[]),
            (&[], &["a", "b", "c", "d"], &[]),
        ] {
            let denied = read(&request(one, two, held));
            assert_eq!(denied, Err(Unread::Denied(Denial::Names)));
        }
        for (one, two, held) in [
            (&["five5"][..], &[][..], &[][..]),
            (&[], &["five5"], &[]),
            (&[], &[], &[("four", "long")]),
        ] {
            let denied = read(&request(one, two, held));
            assert_eq!(denied, Err(Unread::Denied(Denial::Name)));
        }
    }
}
