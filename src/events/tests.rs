//! What is told when, and how much of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::{EventReason, History, Kind, Limits, Message, plan};
use crate::leader::Boot;
use crate::model::{Finding, ObjectRef, PodKey, Reason, Severity};

/// A second less than a minute.
const SOON: Duration = Duration::from_secs(59);

fn at(minutes: u64) -> Boot {
    Boot(Duration::from_secs(60 * minutes))
}

fn message(name: &str, note: &str) -> Message {
    Message {
        object: ObjectRef::new("Service", "shop", name),
        reason: EventReason::ALL[2],
        kind: Kind::Warning,
        note: note.to_owned(),
    }
}

fn history() -> History {
    History::new(Limits::default(), at(0))
}

fn all(messages: &[Message]) -> BTreeSet<Message> {
    messages.iter().cloned().collect()
}

/// What is written, as object and count.
fn told(lasting: &BTreeSet<Message>, history: &mut History, now: Boot) -> Vec<(String, u32)> {
    let writes = plan(lasting, &[], history, now).writes;
    writes.into_iter().map(|write| (write.message.object.name.to_string(), write.count)).collect()
}

#[test]
fn what_lasts_is_told_once_and_again_before_it_is_forgotten() {
    let mut history = history();
    let lasting = all(&[message("a", "x")]);
    assert_eq!(told(&lasting, &mut history, at(0)), [("a".into(), 1)]);
    let mut times = Vec::new();
    for minute in 1..=135 {
        for (_, count) in told(&lasting, &mut history, at(minute)) {
            times.push((minute, count));
        }
    }
    assert_eq!(times, [(45, 2), (90, 3), (135, 4)]);
    let wake = plan(&lasting, &[], &mut history, at(136)).wake_at;
    assert_eq!(wake, Some(at(180)));
}

#[test]
fn what_comes_back_is_counted_and_not_at_once() {
    let mut history = history();
    let lasting = all(&[message("a", "x")]);
    told(&lasting, &mut history, at(0));
    assert_eq!(told(&all(&[]), &mut history, at(1)), []);
    assert_eq!(told(&lasting, &mut history, at(2)), []);
    assert_eq!(told(&all(&[]), &mut history, at(3)), []);
    assert_eq!(told(&lasting, &mut history, at(5)), [("a".into(), 2)]);
    // Gone for an hour, it is another story.
    assert_eq!(told(&all(&[]), &mut history, at(6)), []);
    assert_eq!(told(&all(&[]), &mut history, at(65)), []);
    assert!(history.is_empty());
    assert_eq!(told(&lasting, &mut history, at(66)), [("a".into(), 1)]);
}

#[test]
fn what_happens_again_is_counted_every_five_minutes() {
    let mut history = history();
    let mut times = Vec::new();
    for minute in 0..12 {
        let once = vec![message("a", "x"); 3];
        for write in plan(&all(&[]), &once, &mut history, at(minute)).writes {
            times.push((minute, write.count));
        }
    }
    assert_eq!(times, [(0, 1), (5, 2), (10, 3)]);
}

#[test]
fn one_object_has_ten_and_all_together_a_hundred_at_once() {
    let mut history = history();
    let many: Vec<_> = (0..30).map(|note| message("a", &note.to_string())).collect();
    assert_eq!(told(&all(&many), &mut history, at(0)).len(), 10);
    assert_eq!(history.dropped(), 20);

    let mut history = self::history();
    let many: Vec<_> = (0..300).map(|object| message(&format!("o{object}"), "x")).collect();
    let lasting = all(&many);
    assert_eq!(told(&lasting, &mut history, at(0)).len(), 100);
    let next = plan(&lasting, &[], &mut history, at(0));
    assert_eq!((next.writes.len(), next.wake_at), (0, Some(Boot(Duration::from_millis(500)))));
    assert_eq!(told(&lasting, &mut history, Boot(Duration::from_secs(10))).len(), 20);
    assert_eq!(told(&lasting, &mut history, Boot(Duration::from_secs(70))).len(), 100);
    assert_eq!(told(&lasting, &mut history, Boot(Duration::from_secs(130))).len(), 80);
}

#[test]
fn memory_is_bounded_and_gets_free() {
    let limits = Limits { remembered: 50, ..Limits::default() };
    let mut history = History::new(limits, at(0));
    for round in 0..100 {
        let many: Vec<_> =
            (0..80).map(|object| message(&format!("r{round}o{object}"), "x")).collect();
        plan(&all(&many), &[], &mut history, at(round));
        assert!(history.len() <= 50);
    }
    assert!(history.dropped() > 0);
    plan(&all(&[]), &[], &mut history, at(100));
    plan(&all(&[]), &[], &mut history, at(200));
    assert_eq!(told(&all(&[message("new", "x")]), &mut history, at(200)), [("new".into(), 1)]);
}

#[test]
fn one_reason_leaves_room_for_the_others() {
    let limits = Limits { remembered: 40, burst: 1_000, ..Limits::default() };
    let mut history = History::new(limits, at(0));
    let many: Vec<_> = (0..80).map(|object| message(&format!("o{object}"), "x")).collect();
    assert_eq!(told(&all(&many), &mut history, at(0)).len(), 30);
    let other = |object: usize| {
        let reason = EventReason::ALL[3];
        Message { reason, ..message(&format!("z{object}"), "x") }
    };
    let others: Vec<_> = (0..80).map(other).collect();
    assert_eq!(told(&all(&others), &mut history, at(0)).len(), 10);
}

#[test]
fn what_waits_longest_is_told_first() {
    let mut history = History::new(Limits { burst: 1, ..Limits::default() }, at(0));
    let (early, late) = (message("z", "x"), message("a", "x"));
    assert_eq!(told(&all(&[message("m", "x")]), &mut history, at(0)), [("m".into(), 1)]);
    assert_eq!(told(&all(std::slice::from_ref(&early)), &mut history, at(0)), []);
    let now = Boot(Duration::from_millis(500));
    assert_eq!(told(&all(&[early, late]), &mut history, now), [("z".into(), 1)]);
}

#[test]
fn what_failed_is_tried_again_as_what_it_was() {
    let mut history = history();
    let lasting = all(&[message("a", "x")]);
    assert_eq!(told(&lasting, &mut history, at(0)), [("a".into(), 1)]);
    history.failed(&message("a", "x"), at(0));
    assert_eq!(told(&lasting, &mut history, Boot(SOON)), []);
    assert_eq!(told(&lasting, &mut history, at(1)), [("a".into(), 1)]);
    // Somebody else had told of it.
    history.counted(&message("a", "x"), 7);
    assert_eq!(told(&lasting, &mut history, at(46)), [("a".into(), 8)]);
}

#[test]
fn findings_become_messages() {
    let finding = |reason, severity| Finding {
        object: ObjectRef::new("Service", "shop", "a"),
        severity,
        reason,
        origin: None,
        field: "spec.ports".into(),
        message: "it is wrong".into(),
        way_out: "mend it".into(),
    };
    let message = Message::of(&finding(Reason::ConflictingKey, Severity::Problem)).unwrap();
    assert_eq!(message.note, "spec.ports: it is wrong; mend it");
    assert_eq!((message.reason.name, message.kind), ("ConflictingKey", Kind::Warning));
    let message = Message::of(&finding(Reason::Suspicious, Severity::Warning)).unwrap();
    assert_eq!(message.kind, Kind::Normal);
    assert_eq!(Message::of(&finding(Reason::Unmanaged, Severity::Warning)), None);
    let refused = Message::refused(&PodKey::new("shop", "web-0"), "clusters", "no\n such  thing");
    assert_eq!(
        refused.note,
        "its proxy refused clusters and goes on with those it had: no such thing"
    );
}

/// The reasons of the documentation are those of the program, and within the API's limits.
#[test]
fn every_reason_is_documented() {
    let documented = include_str!("../../docs/events.md");
    let rows = documented.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: Vec<_> = rows.map(|(reason, _)| reason).collect();
    assert_eq!(documented, EventReason::ALL.map(|reason| reason.name));
    for reason in EventReason::ALL {
        assert!(reason.name.len() <= 128 && reason.action.len() <= 128);
    }
    // Each finding that is told has its reason in the list.
    let all = [
        Reason::UnreadableFile,
        Reason::UnreadableObject,
        Reason::DuplicateObject,
        Reason::InvalidValue,
        Reason::ConflictingKey,
        Reason::LostShortName,
        Reason::ConflictingAddress,
        Reason::NotServable,
        Reason::NotCaptured,
        Reason::NotSupported,
        Reason::Suspicious,
        Reason::Unmanaged,
        Reason::ConflictingPods,
        Reason::NotGenerated,
        Reason::HeldBack,
    ];
    let told = all.iter().filter(|reason| EventReason::of(**reason).is_some()).count();
    assert_eq!(told, EventReason::ALL.len() - 1);
}
