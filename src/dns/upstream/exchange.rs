//! One question to one upstream over UDP, and whether what comes back answers it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query as Question, ResponseCode};
use hickory_proto::rr::DNSClass;
use tokio::net::UdpSocket;

use crate::dns::cache::Key;
use crate::dns::response::LARGEST_DATAGRAM;

/// Why an upstream gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The query could not be written.
    #[error("the query cannot be encoded: {0}")]
    Encode(#[from] ProtoError),
    /// The network says that it cannot be reached.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It closed the connection, or a socket was given up.
    #[error("closed before an answer came")]
    Closed,
}

/// A query for a key. Its id is random; with EDNS it says how much we take.
pub fn message(key: &Key, edns: bool) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = key.recursion_desired;
    message.metadata.checking_disabled = key.checking_disabled;
    // We pass on what it says of authenticity (RFC 6840, 5.7).
    message.metadata.authentic_data = key.dnssec_ok;
    message.add_query(Question::query(key.name.clone(), key.kind));
    if edns {
        let mut edns = Edns::new();
        edns.set_max_payload(LARGEST_DATAGRAM).set_dnssec_ok(key.dnssec_ok);
        message.edns = Some(edns);
    }
    message
}

/// Whether a message, whose id fits, answers a key's query.
pub fn answers(message: &Message, key: &Key) -> bool {
    if message.metadata.message_type != MessageType::Response
        || message.metadata.op_code != OpCode::Query
    {
        return false;
    }
    match message.queries.as_slice() {
        [question] => {
            question.name == key.name
                && question.query_type == key.kind
                && question.query_class == DNSClass::IN
        }
        // Servers that do not know EDNS may refuse a query without repeating it.
        [] => {
            matches!(message.metadata.response_code, ResponseCode::FormErr | ResponseCode::NotImp)
        }
        _ => false,
    }
}

/// A socket that takes datagrams of this upstream alone, from a random port.
///
/// # Errors
/// Where the system gives none, or there is no route.
pub async fn socket(upstream: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match upstream {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(upstream).await?;
    Ok(socket)
}

/// Asks from a socket of its own.
///
/// # Errors
/// Where the upstream cannot be reached. Without an answer it waits for ever.
pub async fn ask_afresh(
    upstream: SocketAddr,
    key: &Key,
    edns: bool,
    strange: impl Fn(),
) -> Result<Message, ExchangeError> {
    let query = message(key, edns);
    let socket = socket(upstream).await?;
    socket.send(&query.to_vec()?).await?;
    let mut packet = vec![0; usize::from(u16::MAX)];
    loop {
        let length = socket.recv(&mut packet).await?;
        match Message::from_vec(packet.get(..length).unwrap_or_default()) {
            Ok(message) if message.metadata.id == query.metadata.id && answers(&message, key) => {
                return Ok(message);
            }
            _ => strange(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use hickory_proto::rr::{Name, RecordType};

    use super::*;

    fn key() -> Key {
        Key {
            name: Name::from_ascii("web.example.").unwrap(),
            kind: RecordType::A,
            dnssec_ok: true,
            checking_disabled: false,
            recursion_desired: true,
        }
    }

    #[test]
    fn a_query_says_what_is_wanted() {
        let query = message(&key(), true);
        let edns = query.edns.as_ref().unwrap();
        assert_eq!((edns.max_payload(), edns.flags().dnssec_ok), (1232, true));
        assert!(query.metadata.recursion_desired && !query.metadata.checking_disabled);
        assert!(message(&key(), false).edns.is_none());
        let ids: std::collections::HashSet<_> =
            (0..100).map(|_| message(&key(), true).metadata.id).collect();
        assert!(ids.len() > 90, "ids are random");
    }

    #[test]
    fn only_the_same_question_is_an_answer() {
        let good = message(&key(), true).into_response();
        assert!(answers(&good, &key()));
        let mut upper = good.clone();
        upper.queries[0].name = Name::from_ascii("WEB.example.").unwrap();
        assert!(answers(&upper, &key()), "case does not matter");
        let spoils: [fn(&mut Message); 7] = [
            |m| m.metadata.message_type = MessageType::Query,
            |m| m.metadata.op_code = OpCode::Notify,
            |m| m.queries[0].name = Name::from_ascii("evil.example.").unwrap(),
            |m| m.queries[0].query_type = RecordType::AAAA,
            |m| m.queries[0].query_class = DNSClass::CH,
            |m| m.queries.clear(),
            |m| m.queries.push(m.queries[0].clone()),
        ];
        for (number, spoil) in spoils.into_iter().enumerate() {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert!(!answers(&bad, &key()), "spoil {number}");
        }
        let mut old = good.clone();
        old.queries.clear();
        old.metadata.response_code = ResponseCode::FormErr;
        assert!(answers(&old, &key()), "a server that knows no EDNS");
    }
}
