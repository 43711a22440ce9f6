#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use hickory_proto::op::{MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn record(n: usize) -> Record {
    let [.., c, d] = n.to_be_bytes();
    Record::from_rdata(name("web.shop.example."), 30, RData::A(A::new(10, 0, c, d)))
}

fn query(edns: Option<u16>) -> Query {
    Query {
        header: Metadata::new(9, MessageType::Query, OpCode::Query),
        question: Question::query(name("web.shop.example."), RecordType::A),
        edns: edns.map(|payload| Asker { payload, dnssec_ok: false }),
    }
}

fn filled(edns: Option<u16>, answers: usize, authorities: usize, additionals: usize) -> Message {
    let mut message = to(&query(edns));
    message.answers = (0..answers).map(record).collect();
    message.authorities = (0..authorities).map(record).collect();
    message.additionals = (0..additionals).map(record).collect();
    message
}

#[test]
fn a_datagram_is_as_large_as_its_client_takes_and_never_larger_than_ours() {
    let edns = |payload| Some(Asker { payload, dnssec_ok: false });
    for (proto, asker, expected) in [
        (Proto::Udp, None, 512),
        (Proto::Udp, edns(0), 512),
        (Proto::Udp, edns(511), 512),
        (Proto::Udp, edns(900), 900),
        (Proto::Udp, edns(1232), 1232),
        (Proto::Udp, edns(1233), 1232),
        (Proto::Udp, edns(65_535), 1232),
        (Proto::Tcp, None, 65_535),
        (Proto::Tcp, edns(512), 65_535),
    ] {
        assert_eq!(limit(proto, asker), expected, "{proto:?} {asker:?}");
    }
}

#[test]
fn edns_is_spoken_to_those_who_speak_it() {
    assert!(to(&query(None)).edns.is_none());
    let edns = to(&query(Some(4096))).edns.unwrap();
    assert_eq!((edns.max_payload(), edns.version()), (1232, 0));
    let refusal = Refusal {
        header: query(None).header,
        question: Some(query(None).question),
        edns: Some(Asker { payload: 1232, dnssec_ok: true }),
        code: ResponseCode::BADVERS,
    };
    let bytes = encode(&refuse(&refusal), 512).unwrap();
    let read = Message::from_vec(&bytes).unwrap();
    // 16 has two names.
    assert_eq!(u16::from(read.metadata.response_code), 16);
    assert_eq!(read.edns.map(|edns| edns.version()), Some(0));
}

#[test]
fn what_fits_exactly_is_whole_and_a_byte_less_is_cut() {
    let message = filled(Some(1232), 20, 0, 0);
    let whole = encode(&message, 65_535).unwrap();
    let size = u16::try_from(whole.len()).unwrap();
    assert_eq!(encode(&message, size).unwrap(), whole);
    let cut = Message::from_vec(&encode(&message, size - 1).unwrap()).unwrap();
    assert!(cut.metadata.truncation && cut.edns.is_some());
    assert_eq!(cut.answers.len(), 19);
}

#[test]
fn additional_records_go_in_silence() {
    let message = filled(Some(1232), 10, 1, 40);
    let read = Message::from_vec(&encode(&message, 512).unwrap()).unwrap();
    assert!(!read.metadata.truncation && read.edns.is_some());
    assert_eq!((read.answers.len(), read.authorities.len()), (10, 1));
}

#[test]
fn what_was_cut_before_says_so_still() {
    let mut message = filled(None, 1, 0, 0);
    message.metadata.truncation = true;
    let read = Message::from_vec(&encode(&message, 512).unwrap()).unwrap();
    assert!(read.metadata.truncation);
    assert_eq!(read.answers.len(), 1);
}

proptest! {
    #[test]
    fn no_response_is_larger_than_its_limit_and_all_can_be_read(
        answers in 0_usize..120,
        authorities in 0_usize..5,
        additionals in 0_usize..40,
        limit in 512_u16..2000,
        edns in any::<bool>(),
    ) {
        let message = filled(edns.then_some(4096), answers, authorities, additionals);
        let bytes = encode(&message, limit).unwrap();
        prop_assert!(bytes.len() <= limit.into());
        let read = Message::from_vec(&bytes).unwrap();
        prop_assert_eq!(read.edns.is_some(), edns, "the OPT record is in every response");
        prop_assert_eq!(&read.queries, &message.queries);
        let whole = read.answers.len() == answers && read.authorities.len() == authorities;
        prop_assert_eq!(read.metadata.truncation, !whole);
        prop_assert!(message.answers.starts_with(&read.answers));
        if read.metadata.truncation && answers > 0 {
            // 28 bytes a record at most: nothing is cut without need.
            prop_assert!(bytes.len() + 2 * 28 > limit.into() || read.answers.len() == answers);
        }
    }
}
