//! Nodes whose own resources go again after they were refused.

use std::time::Duration;

use super::super::{Heard, Kind};
use super::rig::{Rig, expect, one};
use super::world::{LDS, World};

const SECOND: Duration = Duration::from_secs(1);

/// A node with these listeners of its own.
fn world(own: &[&str]) -> World {
    let mut world = World { retry: true, ..World::default() };
    world.own = own.iter().map(|name| (*name).into()).collect();
    world
}

#[test]
fn the_one_at_fault_goes_again_with_back_off_and_the_others_once_it_is_taken() {
    let mut world = world(&["l1", "l2", "l3"]);
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    expect(&rig.nack(&first, &[], "l2: no such namespace"), &[]);
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(rig.session.deadline(rig.now), Some(rig.now + SECOND * wait));
        let last = Duration::from_millis(1);
        expect(&rig.wait((SECOND * wait).checked_sub(last).unwrap()), &[]);
        let again = one(rig.wait(last));
        expect(std::slice::from_ref(&again), &[(LDS, &["l2"], &[])]);
        expect(&rig.nack(&again, &[], "l2: no such namespace"), &[]);
    }
    let again = one(rig.wait(SECOND * 60));
    let rest = one(rig.ack(&again, &[]));
    expect(std::slice::from_ref(&rest), &[(LDS, &["l1", "l3"], &[])]);
    expect(&rig.ack(&rest, &[]), &[]);
    expect(&rig.wait(SECOND * 600), &[]);
    assert_eq!(rig.session.deadline(rig.now), None);
}

#[test]
fn all_of_its_own_go_again_where_none_was_named() {
    let mut world = world(&["l1", "l2"]);
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    rig.nack(&first, &[], "something is wrong");
    let again = one(rig.wait(SECOND));
    expect(std::slice::from_ref(&again), &[(LDS, &["l1", "l2"], &[])]);
    expect(&rig.ack(&again, &[]), &[]);
}

#[test]
fn two_at_fault_are_told_of_once() {
    let mut world = world(&["l1", "l2"]);
    let mut rig = Rig::delta(&mut world);
    let repeated = |rig: &Rig| match &rig.heard {
        Some(Heard::Refused(refusal)) => refusal.repeated,
        other => panic!("{other:?}"),
    };
    let first = one(rig.ask(LDS, &[]));
    rig.nack(&first, &[], "l1 is bad");
    assert!(!repeated(&rig));
    world.own.insert("l3".into());
    let second = one(rig.publish(&mut world));
    rig.nack(&second, &[], "l1 is bad, l3 is bad");
    assert!(!repeated(&rig));
    for _ in 0..3 {
        let at = rig.session.deadline(rig.now).unwrap();
        for response in rig.wait(at - rig.now) {
            let words = format!("{} is bad", response.resources[0].name());
            rig.nack(&response, &[], &words);
            assert!(repeated(&rig), "{words}");
        }
    }
}

#[test]
fn one_that_goes_meanwhile_is_not_sent_again() {
    let mut world = world(&["l1", "l2"]);
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    rig.nack(&first, &[], "l2 is bad");
    world.own.remove("l2");
    let second = one(rig.publish(&mut world));
    expect(std::slice::from_ref(&second), &[(LDS, &["l1"], &["l2"])]);
    expect(&rig.ack(&second, &[]), &[]);
    expect(&rig.wait(SECOND * 600), &[]);
    // It comes back, and its waits begin anew.
    world.own.insert("l2".into());
    let third = one(rig.publish(&mut world));
    rig.nack(&third, &[], "l2 is bad");
    expect(&rig.wait(SECOND), &[(LDS, &["l2"], &[])]);
}

#[test]
fn in_sotw_all_go_with_it() {
    let mut world = world(&["l1", "l2"]);
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(LDS, &[]));
    expect(&rig.nack(&first, &[], "l2 is bad"), &[]);
    let again = one(rig.wait(SECOND));
    expect(std::slice::from_ref(&again), &[(LDS, &["l1", "l2"], &[])]);
    expect(&rig.ack(&again, &[]), &[]);
    expect(&rig.wait(SECOND * 600), &[]);
}

#[test]
fn what_is_not_its_own_waits_for_a_change() {
    for kind in Kind::ALL {
        let mut world = world(&[]);
        world.set(kind, "t/a", "1");
        let mut rig = Rig::delta(&mut world);
        let first = one(rig.ask(kind, &["*"]));
        rig.nack(&first, &[], "t/a is bad");
        expect(&rig.wait(SECOND * 600), &[]);
    }
}
