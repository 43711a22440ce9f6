#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use hickory_proto::op::{MessageType, Metadata, OpCode, Query as Question};
use hickory_proto::rr::RecordType;
use hickory_proto::rr::rdata::{A, CNAME, SOA};

use super::*;
use crate::dns::query::Asker;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn a(owner: &str, ttl: u32) -> Record {
    Record::from_rdata(name(owner), ttl, RData::A(A::new(198, 51, 100, 7)))
}

fn soa(ttl: u32, minimum: u32) -> Record {
    let soa = SOA::new(name("example."), name("example."), 1, 2, 3, 4, minimum);
    Record::from_rdata(name("example."), ttl, RData::SOA(soa))
}

fn query(spelled: &str) -> Query {
    Query {
        header: Metadata::new(77, MessageType::Query, OpCode::Query),
        question: Question::query(name(spelled), RecordType::A),
        edns: None,
    }
}

fn reply(answers: Vec<Record>) -> Reply {
    Reply { answers, ..Reply::of_code(ResponseCode::NoError) }
}

#[test]
fn an_answer_is_kept_for_its_least_ttl_and_an_absence_for_what_its_soa_says() {
    let negative = |code, authorities| Reply { authorities, ..Reply::of_code(code) };
    let table = [
        (reply(vec![a("a.example.", 10), a("a.example.", 7)]), Some(7)),
        (reply(vec![a("a.example.", 300)]), Some(30)),
        (reply(vec![a("a.example.", 0)]), None),
        (negative(ResponseCode::NXDomain, vec![soa(60, 3)]), Some(3)),
        (negative(ResponseCode::NXDomain, vec![soa(2, 60)]), Some(2)),
        (negative(ResponseCode::NoError, vec![soa(60, 60)]), Some(5)),
        (negative(ResponseCode::NoError, vec![]), None),
        (negative(ResponseCode::ServFail, vec![soa(60, 60)]), None),
        // An alias of a name that is not there.
        (
            Reply {
                code: ResponseCode::NXDomain,
                authorities: vec![soa(9, 4)],
                ..reply(vec![a("b.", 60)])
            },
            Some(4),
        ),
        (Reply { truncated: true, ..reply(vec![a("a.example.", 10)]) }, None),
    ];
    for (reply, seconds) in table {
        let expected = seconds.map(Duration::from_secs);
        assert_eq!(reply.fresh_for(), expected, "{reply:?}");
    }
}

#[test]
fn a_response_has_the_clients_spelling_and_aged_records() {
    let other = a("other.example.", 20);
    let reply = reply(vec![a("web.example.", 20), other.clone()]);
    let response = reply.response(&query("wEB.exaMPLE."), None, Age::Seconds(15));
    assert_eq!(response.metadata.id, 77);
    assert!(response.metadata.recursion_available && !response.metadata.authoritative);
    assert!(response.queries[0].name.eq_case(&name("wEB.exaMPLE.")));
    assert!(response.answers[0].name.eq_case(&name("wEB.exaMPLE.")));
    assert!(response.answers[1].name.eq_case(&other.name));
    assert_eq!(response.answers[0].ttl, 5);
    let old = reply.response(&query("web.example."), None, Age::Seconds(25));
    assert_eq!(old.answers[0].ttl, 0);
    let stale = reply.response(&query("web.example."), None, Age::Stale);
    assert_eq!(stale.answers[0].ttl, STALE_TTL);
}

#[test]
fn a_renamed_query_is_answered_from_its_own_name_on() {
    let whole = name("web.shop.svc.cluster.local.");
    let alias = RData::CNAME(CNAME(name("db.example.")));
    let answers = vec![Record::from_rdata(whole.clone(), 9, alias), a("db.example.", 9)];
    let response = reply(answers).response(&query("Web.shop.svc."), Some(&whole), Age::Seconds(0));
    assert!(response.answers[0].name.eq_case(&name("Web.shop.svc.")));
    assert_eq!(response.answers[1].name, name("db.example."));
    assert!(response.queries[0].name.eq_case(&name("Web.shop.svc.")));
}

#[test]
fn what_a_client_cannot_read_is_not_said_to_it() {
    let authentic = Reply { authentic: true, ..reply(vec![a("a.", 1)]) };
    assert!(!authentic.response(&query("a."), None, Age::Seconds(0)).metadata.authentic_data);
    let mut asks = query("a.");
    asks.header.authentic_data = true;
    assert!(authentic.response(&asks, None, Age::Seconds(0)).metadata.authentic_data);
    let code = Reply::of_code(ResponseCode::BADCOOKIE);
    let told = code.response(&query("a."), None, Age::Seconds(0)).metadata.response_code;
    assert_eq!(told, ResponseCode::ServFail);
    let mut asks = query("a.");
    asks.edns = Some(Asker { payload: 1232, dnssec_ok: true });
    let told = code.response(&asks, None, Age::Seconds(0));
    assert_eq!(told.metadata.response_code, ResponseCode::BADCOOKIE);
    assert!(told.edns.is_some_and(|edns| edns.flags().dnssec_ok));
}
