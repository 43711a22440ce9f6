#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction
)]

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record};

use super::*;

/// A plain question for an address.
pub fn key(name: &str) -> Key {
    Key {
        name: Name::from_ascii(name).unwrap(),
        kind: RecordType::A,
        dnssec_ok: false,
        checking_disabled: false,
        recursion_desired: true,
    }
}

fn reply(ttl: u32) -> Arc<Reply> {
    let data = RData::A(A::new(198, 51, 100, 7));
    let name = Name::from_ascii("a.example.").unwrap();
    let answers = vec![Record::from_rdata(name, ttl, data)];
    Arc::new(Reply { answers, ..Reply::of_code(ResponseCode::NoError) })
}

fn failure() -> Arc<Reply> {
    Arc::new(Reply::of_code(ResponseCode::ServFail))
}

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

#[test]
fn an_answer_is_fresh_for_its_ttl_and_stale_for_a_day() {
    let (cache, start) = (Cache::default(), Instant::now());
    let (key, reply) = (key("a.example."), reply(10));
    assert_eq!(cache.get(&key, start), Hit::Nothing);
    cache.put(&key, &reply, start);
    let at = |after| cache.get(&key, start + after);
    assert_eq!(at(Duration::ZERO), Hit::Answer(reply.clone(), Age::Seconds(0)));
    assert_eq!(at(9 * SECOND), Hit::Answer(reply.clone(), Age::Seconds(9)));
    assert_eq!(at(10 * SECOND - MILLI), Hit::Answer(reply.clone(), Age::Seconds(9)));
    assert_eq!(at(10 * SECOND), Hit::Stale(reply.clone()));
    assert_eq!(at(10 * SECOND + STALE_FOR - MILLI), Hit::Stale(reply));
    assert_eq!(at(10 * SECOND + STALE_FOR), Hit::Nothing);
}

#[test]
fn a_failure_is_kept_for_a_second_and_never_costs_an_answer() {
    let (cache, start) = (Cache::default(), Instant::now());
    let (bare, known, good) = (key("bare.example."), key("known.example."), reply(1));
    cache.put(&bare, &failure(), start);
    assert_eq!(cache.get(&bare, start + SECOND - MILLI), Hit::Answer(failure(), Age::Stale));
    assert_eq!(cache.get(&bare, start + SECOND), Hit::Nothing);

    cache.put(&known, &good, start);
    let later = start + 5 * SECOND;
    assert_eq!(cache.get(&known, later), Hit::Stale(good.clone()));
    cache.put(&known, &failure(), later);
    assert_eq!(cache.get(&known, later + SECOND - MILLI), Hit::Answer(good.clone(), Age::Stale));
    assert_eq!(cache.get(&known, later + SECOND), Hit::Stale(good));
}

#[test]
fn what_cannot_be_kept_is_not() {
    let (cache, now) = (Cache::default(), Instant::now());
    cache.put(&key("zero.example."), &reply(0), now);
    let norec = Key { recursion_desired: false, ..key("norec.example.") };
    cache.put(&norec, &reply(10), now);
    let cut = Reply { truncated: true, ..(*reply(10)).clone() };
    cache.put(&key("cut.example."), &Arc::new(cut), now);
    assert!(cache.is_empty());
}

#[test]
fn what_contradicts_an_answer_ends_it_though_it_may_not_be_kept() {
    let (cache, now) = (Cache::default(), Instant::now());
    let known = key("known.example.");
    let cut = Arc::new(Reply { truncated: true, ..(*reply(10)).clone() });
    cache.put(&known, &reply(10), now);
    cache.put(&known, &cut, now);
    assert!(!cache.is_empty(), "half an answer contradicts nothing");
    cache.put(&known, &reply(0), now);
    assert_eq!(cache.get(&known, now + SECOND), Hit::Nothing);
    assert!(cache.is_empty());
}

#[test]
fn the_memory_is_bounded() {
    let budget = 1 << 20;
    let (cache, now) = (Cache::new(budget), Instant::now());
    for n in 0..20_000 {
        cache.put(&key(&format!("n{n}.example.")), &reply(30), now);
    }
    let each = 2 * size_of::<Key>() + size_of::<Reply>() + size_of::<Record>();
    assert!(cache.len() > 100 && cache.len() * each <= budget, "{} of {each} bytes", cache.len());
}

#[test]
fn what_is_wanted_tells_keys_apart() {
    let (cache, now) = (Cache::default(), Instant::now());
    let plain = key("a.example.");
    cache.put(&plain, &reply(10), now);
    for other in [
        Key { dnssec_ok: true, ..plain.clone() },
        Key { checking_disabled: true, ..plain.clone() },
        Key { kind: RecordType::AAAA, ..plain.clone() },
        key("b.example."),
    ] {
        assert_eq!(cache.get(&other, now), Hit::Nothing, "{other:?}");
    }
}
