#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use hickory_proto::op::{MessageType, Metadata, OpCode, Query as Question};

use super::*;
use crate::model::MeshNames;

fn table() -> Table {
    let file = r#"{"writtenAt":50,"generation":7,
        "records":{"shop/cart":"10.96.0.7","cart/db":"10.96.0.8","only/four":"10.96.0.4"},
        "records6":{"shop/cart":"fd00::7","only/six":"fd00::6"},
        "short":{"cart":"shop/cart","six":"only/six"}}"#;
    Table::new(&serde_json::from_str(file).unwrap()).0
}

fn zone() -> Zone {
    Zone::new(&MeshNames::default()).unwrap()
}

fn query(name: &str, kind: RecordType) -> Query {
    Query {
        header: Metadata::new(4242, MessageType::Query, OpCode::Query),
        question: Question::query(Name::from_ascii(name).unwrap(), kind),
        edns: None,
    }
}

fn ask(name: &str, kind: RecordType) -> Decision {
    decide(&query(name, kind), Proto::Udp, &zone(), Some(&table()))
}

fn answer(name: &str, kind: RecordType) -> (Outcome, Message) {
    match ask(name, kind) {
        Decision::Answer(outcome, message) => (outcome, message),
        Decision::Forward(forward) => panic!("{name} is forwarded: {forward:?}"),
    }
}

/// The response code and the data of the answers.
fn said(name: &str, kind: RecordType) -> (ResponseCode, Vec<String>) {
    let (_, message) = answer(name, kind);
    let data = message.answers.iter().map(|record| record.data.to_string()).collect();
    (message.metadata.response_code, data)
}

#[test]
fn a_mesh_name_has_its_addresses_in_both_spellings() {
    use RecordType::{A, AAAA, ANY};
    for (name, kind, expected) in [
        ("cart.shop.aether.internal.", A, &["10.96.0.7"][..]),
        ("cart.shop.aether.internal.", AAAA, &["fd00::7"]),
        ("cart.aether.internal.", A, &["10.96.0.7"]),
        ("CART.aeTHer.internal.", AAAA, &["fd00::7"]),
        ("db.cart.aether.internal.", A, &["10.96.0.8"]),
        ("six.aether.internal.", AAAA, &["fd00::6"]),
        ("cart.shop.aether.internal.", ANY, &["10.96.0.7", "fd00::7"]),
    ] {
        let expected = expected.iter().map(|&ip| ip.to_owned()).collect::<Vec<_>>();
        assert_eq!(said(name, kind), (ResponseCode::NoError, expected), "{name} {kind}");
        let (outcome, message) = answer(name, kind);
        assert_eq!(outcome, Outcome::Mesh);
        assert!(message.authorities.is_empty() && message.metadata.authoritative);
        assert!(message.answers.iter().all(|record| record.ttl == 5));
    }
}

#[test]
fn what_exists_is_nodata_for_the_types_that_it_lacks_and_never_nxdomain() {
    use RecordType::{A, AAAA, ANY, CNAME, HTTPS, MX, NS, PTR, SOA, SRV, SVCB, TXT};
    let of = |name, kinds: &'static [RecordType]| kinds.iter().map(move |kind| (name, *kind));
    let others = &[MX, NS, SRV, TXT, CNAME, PTR, SOA, HTTPS, SVCB, RecordType::Unknown(65_280)];
    let all = &[A, AAAA, ANY, MX, NS, SOA, TXT];
    let cases = of("cart.shop.aether.internal.", others)
        .chain(of("four.only.aether.internal.", &[AAAA]))
        .chain(of("six.aether.internal.", &[A]))
        // Empty non-terminals: the domain, and a namespace.
        .chain(of("aether.internal.", all))
        .chain(of("shop.aether.internal.", all))
        .chain(of("_selfcheck.aether.internal.", &[AAAA, MX]));
    for (name, kind) in cases {
        let (outcome, message) = answer(name, kind);
        let code = message.metadata.response_code;
        assert_eq!((outcome, code), (Outcome::MeshNoData, ResponseCode::NoError), "{name} {kind}");
        assert!(message.answers.is_empty(), "{name} {kind}");
        has_soa(&message);
    }
}

#[test]
fn an_unknown_name_does_not_exist_whatever_is_asked_of_it() {
    use RecordType::{A, AAAA, ANY, TXT};
    for name in [
        "nobody.aether.internal.",
        "nobody.shop.aether.internal.",
        "shop.cart.aether.internal.",
        "x.cart.shop.aether.internal.",
        "four.aether.internal.",
        "_selfcheck.shop.aether.internal.",
        "*.shop.aether.internal.",
    ] {
        for kind in [A, AAAA, ANY, TXT] {
            let (outcome, message) = answer(name, kind);
            assert_eq!(outcome, Outcome::MeshNxDomain, "{name} {kind}");
            assert_eq!(message.metadata.response_code, ResponseCode::NXDomain, "{name} {kind}");
            has_soa(&message);
        }
    }
}

/// Every negative answer carries the SOA record of the domain, TTL 5 and minimum 5.
fn has_soa(message: &Message) {
    let [record] = message.authorities.as_slice() else { panic!("{:?}", message.authorities) };
    let RData::SOA(soa) = &record.data else { panic!("{record:?}") };
    assert_eq!((record.ttl, soa.minimum, soa.serial), (5, 5, 7));
    assert_eq!(record.name, Name::from_ascii("aether.internal.").unwrap());
}

#[test]
fn without_a_table_mesh_names_fail_and_the_rest_is_forwarded() {
    for name in ["aether.internal.", "cart.shop.aether.internal.", "_selfcheck.aether.internal."] {
        let decision = decide(&query(name, RecordType::A), Proto::Udp, &zone(), None);
        let Decision::Answer(outcome, message) = decision else { panic!("{name}") };
        assert_eq!(outcome, Outcome::MeshServFail);
        assert_eq!(message.metadata.response_code, ResponseCode::ServFail);
        assert!(!message.metadata.authoritative && message.authorities.is_empty());
    }
    let decision = decide(&query("example.com.", RecordType::A), Proto::Udp, &zone(), None);
    assert!(matches!(decision, Decision::Forward(_)));
}

#[test]
fn the_case_of_the_question_is_kept_in_question_and_answer() {
    let spelled = Name::from_ascii("cArT.sHoP.aEtHeR.iNtErNaL.").unwrap();
    let (_, message) = answer("cArT.sHoP.aEtHeR.iNtErNaL.", RecordType::A);
    assert!(message.queries[0].name.eq_case(&spelled));
    assert!(message.answers[0].name.eq_case(&spelled));
    let bytes = response::encode(&message, 512).unwrap();
    let read = Message::from_vec(&bytes).unwrap();
    assert!(read.queries[0].name.eq_case(&spelled) && read.answers[0].name.eq_case(&spelled));
}

#[test]
fn all_other_names_are_forwarded_in_lower_case() {
    for (name, asked, renamed) in [
        ("Example.COM.", "example.com.", false),
        (".", ".", false),
        ("aether.internal.example.", "aether.internal.example.", false),
        ("web.shop.svc.cluster.local.", "web.shop.svc.cluster.local.", false),
        ("Web.shop.SVC.", "web.shop.svc.cluster.local.", true),
    ] {
        let Decision::Forward(forward) = ask(name, RecordType::A) else { panic!("{name}") };
        assert!(forward.name.eq_case(&Name::from_ascii(asked).unwrap()), "{name}: {forward:?}");
        assert_eq!(forward.renamed, renamed, "{name}");
    }
}

#[test]
fn any_of_another_name_is_for_tcp_alone() {
    let asked = query("example.com.", RecordType::ANY);
    let Decision::Answer(outcome, message) = decide(&asked, Proto::Udp, &zone(), None) else {
        panic!("forwarded over UDP")
    };
    assert_eq!((outcome, message.metadata.truncation), (Outcome::ToTcp, true));
    assert_eq!(message.metadata.response_code, ResponseCode::NoError);
    assert!(message.answers.is_empty());
    assert!(matches!(decide(&asked, Proto::Tcp, &zone(), None), Decision::Forward(_)));
}

#[test]
fn transfers_and_other_classes_are_refused() {
    for kind in [RecordType::AXFR, RecordType::IXFR, RecordType::OPT, RecordType::TSIG] {
        for name in ["aether.internal.", "example.com."] {
            assert_eq!(said(name, kind), (ResponseCode::Refused, vec![]), "{name} {kind}");
        }
    }
    for class in [DNSClass::HS, DNSClass::ANY, DNSClass::NONE, DNSClass::Unknown(77)] {
        for name in ["cart.shop.aether.internal.", "example.com."] {
            let mut asked = query(name, RecordType::A);
            asked.question.query_class = class;
            let decision = decide(&asked, Proto::Udp, &zone(), Some(&table()));
            let Decision::Answer(outcome, message) = decision else { panic!("{class:?}") };
            assert_eq!(outcome, Outcome::Refused);
            assert_eq!(message.metadata.response_code, ResponseCode::Refused);
        }
    }
}

#[test]
fn chaos_tells_the_version_and_nothing_else() {
    let chaos = |name: &str| {
        let mut asked = query(name, RecordType::TXT);
        asked.question.query_class = DNSClass::CH;
        match decide(&asked, Proto::Udp, &zone(), None) {
            Decision::Answer(_, message) => message,
            Decision::Forward(_) => panic!("{name} is forwarded"),
        }
    };
    for name in ["version.bind.", "VERSION.server."] {
        let message = chaos(name);
        assert!(message.answers[0].data.to_string().contains("aether mesh-dns"), "{message:?}");
        assert_eq!(message.answers[0].dns_class, DNSClass::CH);
    }
    for name in ["hostname.bind.", "id.server.", "cart.shop.aether.internal."] {
        assert_eq!(chaos(name).metadata.response_code, ResponseCode::Refused);
    }
}

#[test]
fn the_self_check_tells_of_the_table_and_is_never_kept() {
    let (_, message) = answer("_selfcheck.aether.internal.", RecordType::TXT);
    let text = message.answers[0].data.to_string();
    assert!(text.contains("generation=7") && text.contains("writtenAt=50"), "{text}");
    assert_eq!(message.answers[0].ttl, 0);
    let expected = (ResponseCode::NoError, vec!["127.0.0.1".to_owned()]);
    assert_eq!(said("_SelfCheck.aether.internal.", RecordType::A), expected);
}
