//! Single steps of one process's part.

use std::time::Duration;

use crate::leader::{Answer, Boot, Election, Record, Request, Settings, Step};

fn at(ms: u64) -> Boot {
    Boot(Duration::from_millis(ms))
}

fn record(version: u64, holder: &str) -> Record<()> {
    let holder = (!holder.is_empty()).then(|| holder.into());
    let duration = Some(Duration::from_secs(15));
    Record { version: version.to_string().into(), holder, duration, body: () }
}

fn election() -> Election<()> {
    Election::new(Settings::default(), "me")
}

/// A process that has held the Lease in version 5 since it asked at 1,000 ms.
fn leader() -> Election<()> {
    let mut election = election();
    election.seen(Some(record(4, "")), at(1000));
    assert!(
        matches!(election.step(at(1000)), Step::Send(Request::Hold(over), _) if *over.version == *"4")
    );
    election.answered(Answer::Stored(record(5, "me")), at(1400));
    assert_eq!(election.leads_until(), Some(at(11_000)), "counted from when it was sent");
    election
}

#[test]
fn nothing_is_sent_before_the_watch_has_begun() {
    assert_eq!(election().step(at(99_999)), Step::Wait(None));
}

#[test]
fn a_lease_that_is_not_there_is_created() {
    let mut election = election();
    election.seen(None, at(1));
    assert!(matches!(election.step(at(1)), Step::Send(Request::Create, _)));
    assert_eq!(election.step(at(1)), Step::Wait(None), "one request at a time");
    election.answered(Answer::Stored(record(1, "me")), at(2));
    assert_eq!(election.leads_until(), Some(at(10_001)));
}

#[test]
fn another_ones_record_must_stay_as_it_is_for_the_duration() {
    let mut election = election();
    election.seen(Some(record(4, "you")), at(1000));
    election.seen(Some(record(4, "you")), at(9000));
    assert_eq!(election.step(at(15_999)), Step::Wait(Some(at(16_000))));
    election.seen(Some(record(5, "you")), at(15_999));
    assert_eq!(election.step(at(16_000)), Step::Wait(Some(at(30_999))));
    assert!(matches!(election.step(at(30_999)), Step::Send(Request::Hold(_), _)));
}

#[test]
fn a_longer_duration_counts_and_a_shorter_or_endless_one_does_not() {
    for (written, waits) in [(0, 15), (1, 15), (15, 15), (40, 40), (100_000, 600)] {
        let mut election = election();
        let mut record = record(4, "you");
        record.duration = Some(Duration::from_secs(written));
        election.seen(Some(record), at(0));
        assert_eq!(election.step(at(1)), Step::Wait(Some(at(waits * 1000))), "{written}");
    }
}

#[test]
fn a_leader_renews_and_lapses_without_an_answer() {
    let mut leader = leader();
    assert_eq!(leader.step(at(2999)), Step::Wait(Some(at(3000))));
    assert!(matches!(leader.step(at(3000)), Step::Send(Request::Hold(_), _)));
    // While it waits for the answer, the end of its term wakes it.
    assert_eq!(leader.step(at(3001)), Step::Wait(Some(at(11_000))));
    assert_eq!(leader.leads_until(), Some(at(11_000)));
    leader.step(at(11_000));
    assert_eq!(leader.leads_until(), None);
    // The answer comes after all: the Lease is its own, in a new term.
    leader.answered(Answer::Stored(record(6, "me")), at(12_000));
    assert_eq!(leader.leads_until(), Some(at(13_000)));
    assert_eq!(leader.term().unwrap().number, 2);
}

#[test]
fn an_answer_that_comes_too_late_makes_no_leader() {
    let mut election = election();
    election.seen(Some(record(4, "")), at(0));
    election.step(at(0));
    election.answered(Answer::Stored(record(5, "me")), at(10_000));
    assert_eq!(election.leads_until(), None);
    assert!(matches!(election.step(at(10_000)), Step::Send(Request::Hold(_), _)), "it is its own");
}

#[test]
fn a_lost_answer_is_looked_up_before_anything_is_written() {
    let mut leader = leader();
    leader.step(at(3000));
    leader.answered(Answer::Failed, at(6000));
    assert_eq!(leader.leads_until(), Some(at(11_000)), "it still leads");
    let Step::Wait(Some(retry)) = leader.step(at(6000)) else { panic!() };
    assert!(retry > at(6000) && retry < at(6400), "{retry:?}");
    assert!(matches!(leader.step(retry), Step::Send(Request::Read, _)));
    leader.answered(Answer::Read(Some(record(6, "me"))), at(6500));
    assert!(
        matches!(leader.step(at(6500)), Step::Send(Request::Hold(over), _) if *over.version == *"6")
    );
}

#[test]
fn whoever_is_refused_reads_at_once() {
    let mut leader = leader();
    leader.step(at(3000));
    leader.answered(Answer::Refused, at(3010));
    assert!(matches!(leader.step(at(3010)), Step::Send(Request::Read, _)));
    leader.answered(Answer::Read(Some(record(9, "you"))), at(3020));
    assert_eq!(leader.leads_until(), None);
    assert_eq!(leader.step(at(3020)), Step::Wait(Some(at(18_020))));
}

#[test]
fn the_watch_ends_a_term_at_once_and_a_late_one_does_not() {
    let mut late = leader();
    late.seen(Some(record(3, "you")), at(1500));
    late.seen_deleted("2", at(1500));
    assert_eq!(late.leads_until(), Some(at(11_000)), "what is older than its own is no news");
    for record in [Some(record(6, "you")), Some(record(6, "")), None] {
        let mut leader = leader();
        leader.seen(record.clone(), at(1500));
        assert_eq!(leader.leads_until(), None, "{record:?}");
    }
    let mut edited = leader();
    edited.seen(Some(record(7, "me")), at(1500));
    assert_eq!(edited.leads_until(), Some(at(11_000)));
    assert!(
        matches!(edited.step(at(3000)), Step::Send(Request::Hold(over), _) if *over.version == *"7")
    );
}

#[test]
fn an_answer_that_was_overtaken_makes_no_leader() {
    let mut election = election();
    election.seen(Some(record(4, "")), at(0));
    election.step(at(0));
    election.seen(Some(record(6, "you")), at(10));
    election.answered(Answer::Stored(record(5, "me")), at(20));
    assert_eq!(election.leads_until(), None);
    assert_eq!(election.step(at(20)), Step::Wait(Some(at(15_010))));
}

#[test]
fn a_lease_deleted_under_its_holder_is_waited_for() {
    let mut candidate = election();
    candidate.seen(Some(record(4, "you")), at(1000));
    candidate.seen_deleted("5", at(2000));
    assert_eq!(candidate.step(at(2000)), Step::Wait(Some(at(16_000))));
    assert!(matches!(candidate.step(at(16_000)), Step::Send(Request::Create, _)));
}

#[test]
fn a_process_that_stops_hands_over_what_it_holds_and_nothing_else() {
    let mut leader = leader();
    leader.stop();
    assert_eq!(leader.leads_until(), None);
    assert!(
        matches!(leader.step(at(1500)), Step::Send(Request::Release(over), _) if *over.version == *"5")
    );
    leader.answered(Answer::Stored(record(6, "")), at(1510));
    assert_eq!(leader.step(at(1510)), Step::Done);

    let mut candidate = election();
    candidate.seen(Some(record(4, "you")), at(0));
    candidate.stop();
    assert_eq!(candidate.step(at(1)), Step::Done);
}

#[test]
fn a_process_that_stops_while_it_takes_the_lease_gives_it_back() {
    for lost in [false, true] {
        let mut election = election();
        election.seen(Some(record(4, "")), at(0));
        election.step(at(0));
        election.stop();
        assert_eq!(election.step(at(1)), Step::Wait(None));
        let answer = if lost { Answer::Failed } else { Answer::Stored(record(5, "me")) };
        election.answered(answer, at(5));
        assert_eq!(election.leads_until(), None);
        if lost {
            let Step::Wait(Some(retry)) = election.step(at(5)) else { panic!() };
            assert!(matches!(election.step(retry), Step::Send(Request::Read, _)));
            election.answered(Answer::Read(Some(record(5, "me"))), at(300));
        }
        assert!(matches!(election.step(at(300)), Step::Send(Request::Release(_), _)), "{lost}");
    }
}

#[test]
fn pauses_grow_and_end() {
    let mut election = election();
    election.seen(None, at(0));
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let Step::Send(..) = election.step(now) else { panic!() };
        election.answered(Answer::Failed, now);
        let Step::Wait(Some(next)) = election.step(now) else { panic!() };
        pauses.push(next.since(now));
        now = next;
    }
    assert!(pauses[0] < Duration::from_millis(260) && pauses.is_sorted(), "{pauses:?}");
    let longest = pauses.last().unwrap();
    assert!((3750..=5000).contains(&longest.as_millis()), "{pauses:?}");
}
