//! Permits: what may be written, and when no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::leader::permit::{Seat, Term};
use crate::leader::{Boot, Clock, Leadership, NotWritten};

struct Rig {
    time: Arc<AtomicU64>,
    seat: Seat,
    leadership: Leadership,
}

fn rig() -> Rig {
    let time = Arc::new(AtomicU64::new(1000));
    let read = time.clone();
    let clock = Clock::new(move || Boot(Duration::from_millis(read.load(SeqCst))));
    let (seat, leadership) = Seat::new(clock);
    Rig { time, seat, leadership }
}

fn term(number: u64, until: u64) -> Option<Term> {
    Some(Term { number, until: Boot(Duration::from_millis(until)) })
}

const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn a_permit_ends_with_its_term_and_by_the_clock() {
    let rig = rig();
    assert!(!rig.leadership.is_leader() && rig.leadership.permit().is_none());
    rig.seat.say(term(1, 2000));
    let permit = rig.leadership.permit().unwrap();
    assert_eq!(permit.remaining(), Ok(Duration::from_secs(1)));
    rig.time.store(1999, SeqCst);
    assert_eq!(permit.check(), Ok(()));
    // Nobody said anything: the clock alone ends it.
    rig.time.store(2000, SeqCst);
    assert_eq!(permit.check(), Err(NotWritten::Lost));
    assert!(!rig.leadership.is_leader());
    // A renewal of the same term makes it good again, another term does not.
    rig.seat.say(term(1, 3000));
    assert_eq!(permit.check(), Ok(()));
    rig.seat.say(term(2, 4000));
    assert_eq!(permit.check(), Err(NotWritten::Lost));
    assert!(rig.leadership.permit().unwrap().check().is_ok());
}

#[tokio::test]
async fn changes_are_told_and_renewals_are_none() {
    let rig = rig();
    let mut leadership = rig.leadership.clone();
    let soon = Duration::from_millis(20);
    assert!(rig.seat.say(term(1, 2000)));
    tokio::time::timeout(LIMIT, leadership.changed()).await.unwrap();
    assert!(!rig.seat.say(term(1, 3000)));
    assert!(tokio::time::timeout(soon, leadership.changed()).await.is_err());
    let permit = leadership.acquired().await;
    assert!(tokio::time::timeout(soon, permit.lost()).await.is_err());
    drop(rig.seat);
    tokio::time::timeout(LIMIT, permit.lost()).await.unwrap();
    tokio::time::timeout(LIMIT, leadership.changed()).await.unwrap();
    assert!(!leadership.is_leader());
    assert!(tokio::time::timeout(soon, leadership.changed()).await.is_err());
}

#[tokio::test]
async fn a_write_is_refused_cut_or_done() {
    let rig = rig();
    rig.seat.say(term(1, 61_000));
    let permit = rig.leadership.permit().unwrap();
    assert_eq!(permit.write(LIMIT, async { 7 }).await, Ok(7));
    let never = std::future::pending::<()>;
    let soon = Duration::from_millis(20);
    assert_eq!(permit.write(soon, never()).await, Err(NotWritten::TimedOut(soon)));
    // Less is left of the term than the request might take.
    rig.time.store(60_900, SeqCst);
    let cut = permit.write(LIMIT, never()).await;
    assert_eq!(cut, Err(NotWritten::TimedOut(Duration::from_millis(90))));
    rig.time.store(61_000, SeqCst);
    let begun = async { panic!("it must not begin") };
    assert_eq!(permit.write(LIMIT, begun).await, Err::<(), _>(NotWritten::Lost));
}

#[tokio::test]
async fn a_write_ends_when_the_leadership_does() {
    let rig = rig();
    rig.seat.say(term(1, 61_000));
    let permit = rig.leadership.permit().unwrap();
    let write = tokio::spawn({
        let permit = permit.clone();
        async move { permit.write(LIMIT, std::future::pending::<()>()).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!rig.seat.idle(Duration::from_millis(20)).await, "one is under way");
    rig.seat.say(None);
    assert_eq!(write.await.unwrap(), Err(NotWritten::Lost));
    assert!(rig.seat.idle(LIMIT).await);
}

/// As a process does that was stopped in the middle of a request and goes on a minute later.
#[tokio::test]
async fn a_request_does_not_go_on_after_the_end_of_the_term() {
    let rig = rig();
    rig.seat.say(term(1, 11_000));
    let permit = rig.leadership.permit().unwrap();
    let time = rig.time.clone();
    let request = async {
        time.store(61_000, SeqCst);
        tokio::task::yield_now().await;
        panic!("it must not go on")
    };
    assert_eq!(permit.write(LIMIT, request).await, Err::<(), _>(NotWritten::Lost));
}

#[tokio::test]
async fn who_is_alone_always_leads() {
    let mut leadership = Leadership::alone();
    let permit = leadership.acquired().await;
    assert_eq!(permit.write(LIMIT, async { 1 }).await, Ok(1));
    assert!(leadership.clone().is_leader());
}
