#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

const SERVER: &str = "https://10.0.0.1:6443";

fn away() -> Trouble {
    Trouble { cause: Cause::Unreachable, words: "Connection refused".to_owned() }
}

fn forbidden(kind: ObjectKind) -> Trouble {
    Trouble { cause: Cause::Forbidden { verb: "watch", kind }, words: "no".to_owned() }
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn one_line_when_it_begins_and_one_when_it_is_over() {
    let start = Instant::now();
    let mut ledger = Ledger::new(SERVER, Vec::new());
    let kinds = [ObjectKind::Pod, ObjectKind::Node, ObjectKind::Service];
    let mut lines = Vec::new();
    for tenth in 0..100 {
        let now = start + secs(f64::from(tenth) / 10.0);
        for kind in kinds {
            ledger.trouble(kind, away(), now);
        }
        lines.extend(ledger.lines(now));
        assert_eq!(ledger.due().is_some(), tenth < 10, "{tenth}");
    }
    assert_eq!(lines.len(), 1, "{lines:?}");
    let Line::Began(words) = &lines[0] else { panic!("{lines:?}") };
    assert!(words.contains(SERVER) && words.contains("Connection refused"), "{words}");
    let now = start + secs(12.0);
    ledger.answered(ObjectKind::Pod);
    ledger.answered(ObjectKind::Node);
    assert!(ledger.lines(now).is_empty(), "one kind still waits");
    ledger.answered(ObjectKind::Service);
    let over = format!("the API server at {SERVER} is reached again, after 12.0 s");
    assert_eq!(ledger.lines(now), [Line::Over(over)]);
    assert!(ledger.lines(now).is_empty());
}

#[test]
fn what_passes_at_once_is_not_said() {
    let start = Instant::now();
    let mut ledger = Ledger::new(SERVER, Vec::new());
    for second in 0..60 {
        let now = start + secs(f64::from(second));
        ledger.trouble(ObjectKind::Pod, away(), now);
        assert_eq!(ledger.due(), Some(now + MOMENT));
        assert!(ledger.lines(now + secs(0.9)).is_empty());
        assert_eq!(ledger.degraded(), None);
        ledger.answered(ObjectKind::Pod);
        assert!(ledger.lines(now + secs(0.95)).is_empty());
    }
}

#[test]
fn each_permission_is_said_by_itself() {
    let start = Instant::now();
    let mut ledger = Ledger::new(SERVER, Vec::new());
    for kind in [ObjectKind::Pod, ObjectKind::EndpointSlice] {
        ledger.trouble(kind, forbidden(kind), start);
    }
    assert_eq!(ledger.lines(start + MOMENT).len(), 2);
    let degraded = ledger.degraded().unwrap();
    assert!(degraded.contains("endpointslices") && degraded.contains("watch pods"), "{degraded}");
    ledger.answered(ObjectKind::Pod);
    let lines = ledger.lines(start + secs(2.0));
    assert_eq!(
        lines,
        [Line::Over("we may watch pods of the API group \"\" again, after 2.0 s".to_owned())]
    );
    // Another cause of the same kind is said after a moment of its own.
    ledger.trouble(ObjectKind::EndpointSlice, away(), start + secs(3.0));
    let lines = ledger.lines(start + secs(3.5));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(matches!(&lines[0], Line::Over(_)));
    assert!(matches!(&ledger.lines(start + secs(4.0))[..], [Line::Began(_)]));
}

#[test]
fn before_the_first_complete_state_everything_is_told_at_once() {
    let start = Instant::now();
    let mut ledger = Ledger::new(SERVER, vec![ObjectKind::Node, ObjectKind::Pod]);
    assert_eq!(ledger.waiting().unwrap(), "no complete list yet of nodes, pods");
    ledger.trouble(ObjectKind::Pod, forbidden(ObjectKind::Pod), start);
    let waiting = ledger.waiting().unwrap();
    assert!(waiting.contains("watch pods") && waiting.ends_with("nodes, pods"), "{waiting}");
    ledger.missing(Vec::new());
    assert_eq!(ledger.waiting(), None);
    assert_eq!(ledger.degraded(), None, "not before it has lasted a moment");
    ledger.lines(start + MOMENT);
    assert!(ledger.degraded().unwrap().contains("what was known last"));
}
