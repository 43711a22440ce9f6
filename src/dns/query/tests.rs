#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use hickory_proto::op::Edns;
use hickory_proto::rr::{Name, RecordType};
use proptest::prelude::*;

use super::*;

fn message(name: &str) -> Message {
    let mut message = Message::new(0x1234, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Question::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message
}

fn bytes(message: &Message) -> Vec<u8> {
    message.to_vec().unwrap()
}

fn refused(packet: &[u8]) -> Refusal {
    match read(packet) {
        Packet::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_is_read_with_what_it_says_of_its_sender() {
    let mut asked = message("wEb.Shop.");
    let Packet::Query(query) = read(&bytes(&asked)) else { panic!() };
    assert_eq!((query.header.id, query.header.recursion_desired), (0x1234, true));
    assert!(query.question.name.eq_case(&Name::from_ascii("wEb.Shop.").unwrap()));
    assert_eq!(query.edns, None);
    for (payload, expected) in [(0, 512), (512, 512), (4096, 4096), (65_535, 65_535)] {
        let mut edns = Edns::new();
        edns.set_max_payload(payload).set_dnssec_ok(true);
        asked.edns = Some(edns);
        let Packet::Query(query) = read(&bytes(&asked)) else { panic!() };
        assert_eq!(query.edns, Some(Asker { payload: expected, dnssec_ok: true }));
    }
}

#[test]
fn responses_and_scraps_are_met_with_silence() {
    let response = message("a.").into_response();
    assert!(matches!(read(&bytes(&response)), Packet::Silent));
    let whole = bytes(&message("a."));
    for length in 0..12 {
        assert!(matches!(read(&whole[..length]), Packet::Silent), "{length} bytes");
    }
}

#[test]
fn what_is_no_query_is_told_why() {
    let mut other = message("a.");
    other.metadata.op_code = OpCode::Notify;
    assert_eq!(refused(&bytes(&other)).code, ResponseCode::NotImp);
    other.metadata.op_code = OpCode::Unknown(9);
    assert_eq!(refused(&bytes(&other)).code, ResponseCode::NotImp);

    let mut none = message("a.");
    none.queries.clear();
    let mut two = message("a.");
    two.queries.push(two.queries[0].clone());
    for odd in [none, two] {
        let refusal = refused(&bytes(&odd));
        assert_eq!((refusal.code, refusal.header.id), (ResponseCode::FormErr, 0x1234));
    }
    let mut new = message("a.");
    let mut edns = Edns::new();
    edns.set_version(1);
    new.edns = Some(edns);
    assert_eq!(refused(&bytes(&new)).code, ResponseCode::BADVERS);
}

/// A header with these counts before a body.
fn packet(counts: [u16; 4], body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x12, 0x34, 0x01, 0x00];
    for count in counts {
        packet.extend(count.to_be_bytes());
    }
    packet.extend(body);
    packet
}

#[test]
fn odd_packets_from_the_wild() {
    let question = b"\x01a\x00\x00\x01\x00\x01";
    let opt = b"\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00";
    let two_opts = [&question[..], opt, opt].concat();
    let named_opt = [&question[..], b"\x01x\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00"].concat();
    let cookie =
        [&question[..], b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x0c\x00\x0a\x00\x08abcdefgh"]
            .concat();
    let long_option =
        [&question[..], b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x04\x00\x0a\xff\xff"].concat();
    let name_64 = [&[64][..], &[b'a'; 64], b"\x00\x00\x01\x00\x01"].concat();
    let name_256: Vec<u8> = [&[63][..], &[b'a'; 63]]
        .concat()
        .repeat(4)
        .into_iter()
        .chain(*b"\x00\x00\x01\x00\x01")
        .collect();
    let table: [(&str, Vec<u8>, Option<ResponseCode>); 14] = [
        ("plain", packet([1, 0, 0, 0], question), None),
        ("bytes after the end", packet([1, 0, 0, 0], &[question, &b"more"[..]].concat()), None),
        ("a cookie", packet([1, 0, 0, 1], &cookie), None),
        (
            "a name that points at itself",
            packet([1, 0, 0, 0], b"\xc0\x0c\x00\x01\x00\x01"),
            Some(ResponseCode::FormErr),
        ),
        (
            "names that point at each other",
            packet([1, 0, 0, 0], b"\xc0\x0e\xc0\x0c\x00\x01\x00\x01"),
            Some(ResponseCode::FormErr),
        ),
        (
            "a name that points behind itself",
            packet([1, 0, 0, 0], b"\xc0\xff\x00\x01\x00\x01"),
            Some(ResponseCode::FormErr),
        ),
        ("a label of 64", packet([1, 0, 0, 0], &name_64), Some(ResponseCode::FormErr)),
        ("a name of 257", packet([1, 0, 0, 0], &name_256), Some(ResponseCode::FormErr)),
        ("half a question", packet([1, 0, 0, 0], b"\x01a\x00\x00"), Some(ResponseCode::FormErr)),
        ("counts of all and nothing there", packet([0xffff; 4], b""), Some(ResponseCode::FormErr)),
        (
            "additionals that are not there",
            packet([1, 0, 0, 0xffff], question),
            Some(ResponseCode::FormErr),
        ),
        ("two OPT records", packet([1, 0, 0, 2], &two_opts), Some(ResponseCode::FormErr)),
        (
            "an OPT record with a name",
            packet([1, 0, 0, 1], &named_opt),
            Some(ResponseCode::FormErr),
        ),
        (
            "an option longer than its record",
            packet([1, 0, 0, 1], &long_option),
            Some(ResponseCode::FormErr),
        ),
    ];
    for (what, packet, code) in table {
        match (read(&packet), code) {
            (Packet::Query(_), None) => {}
            (Packet::Refused(refusal), Some(code)) => assert_eq!(refusal.code, code, "{what}"),
            (other, code) => panic!("{what}: {other:?}, and not {code:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_bytes_are_taken_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_good_query_with_some_bytes_changed_is_taken_without_a_panic(
        changes in prop::collection::vec((0_usize..60, any::<u8>()), 1..6),
        cut in 0_usize..60,
    ) {
        let mut asked = message("web.shop.aether.internal.");
        asked.edns = Some(Edns::new());
        let mut packet = bytes(&asked);
        for (at, byte) in changes {
            if let Some(old) = packet.get_mut(at) {
                *old = byte;
            }
        }
        packet.truncate(packet.len().saturating_sub(cut));
        let _ = read(&packet);
    }
}
