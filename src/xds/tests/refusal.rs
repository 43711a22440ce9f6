//! Refusals: statement 6.

use super::super::order::ENDPOINTS;
use super::super::{Heard, Kind, Protocol};
use super::rig::{Rig, expect, one};
use super::warm::{delta, settle, sotw};
use super::world::{CDS, EDS, LDS, RDS, World};

#[test]
fn s06_a_refused_type_goes_again_only_when_its_content_changes() {
    for kind in Kind::ALL {
        let mut world = World::default();
        world.set(kind, "t/a", "1").set(kind, "t/b", "1");
        let mut rig = Rig::delta(&mut world);
        let first = one(rig.ask(kind, &["*"]));
        expect(&rig.nack(&first, &[], "no: t/a is bad"), &[]);
        // Neither a snapshot without news of this type, nor time, nor a request brings it back.
        let other = if kind == LDS { RDS } else { LDS };
        expect(&rig.publish(world.set(other, "x", "1")), &[]);
        expect(&rig.wait(std::time::Duration::from_mins(1)), &[]);
        expect(&rig.ack(&first, &[]), &[]);
        // The culprit changes: the others, which count as not delivered, go with it.
        let second = one(rig.publish(world.set(kind, "t/a", "2")));
        expect(std::slice::from_ref(&second), &[(kind, &["t/a", "t/b"], &[])]);
        expect(&rig.ack(&second, &[]), &[]);
        let third = one(rig.publish(world.set(kind, "t/b", "2")));
        expect(std::slice::from_ref(&third), &[(kind, &["t/b"], &[])]);
    }
}

#[test]
fn s06_the_same_in_sotw() {
    for kind in [CDS, EDS, LDS, RDS] {
        let mut world = World::default();
        world.set(kind, "a", "1").set(kind, "b", "1");
        let mut rig = Rig::sotw(&mut world);
        let names: &[&str] = if kind.whole_state() { &[] } else { &["a", "b"] };
        let first = one(rig.ask(kind, names));
        expect(&rig.nack(&first, names, "no"), &[]);
        expect(&rig.publish(world.set(Kind::VirtualHost, "x", "1")), &[]);
        expect(&rig.wait(std::time::Duration::from_mins(1)), &[]);
        let second = one(rig.publish(world.set(kind, "a", "2")));
        expect(std::slice::from_ref(&second), &[(kind, &["a", "b"], &[])]);
        expect(&rig.ack(&second, names), &[]);
        expect(&rig.publish(&mut world), &[]);
    }
}

#[test]
fn s06_a_quarantined_culprit_lets_the_others_through() {
    let mut world = World::default();
    world.set(LDS, "bad", "1").set(LDS, "good", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    rig.nack(&first, &[], "bad is bad");
    // It may have been applied in part, so its removal is told.
    let second = one(rig.publish(world.remove(LDS, "bad")));
    expect(std::slice::from_ref(&second), &[(LDS, &["good"], &["bad"])]);
}

#[test]
fn s06_a_quarantined_culprit_lets_the_others_through_in_sotw() {
    for kind in [EDS, LDS] {
        let mut world = World::default();
        world.set(kind, "bad", "1").set(kind, "good", "1");
        let mut rig = Rig::sotw(&mut world);
        let first = one(rig.ask(kind, &["bad", "good"]));
        rig.nack(&first, &["bad", "good"], "bad is bad");
        expect(&rig.publish(world.remove(kind, "bad")), &[(kind, &["good"], &[])]);
    }
}

#[test]
fn s06_what_changed_while_the_answer_was_awaited_goes_after_a_refusal() {
    let mut world = World::default();
    world.set(LDS, "a", "1").set(LDS, "b", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    expect(&rig.publish(world.set(LDS, "a", "2")), &[]);
    expect(&rig.nack(&first, &[], "a is bad"), &[(LDS, &["a", "b"], &[])]);
}

#[test]
fn s06_a_refusal_is_told_once_with_its_names_and_words() {
    let mut world = World::default();
    world.set(LDS, "capture_a", "1").set(LDS, "capture_b", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    let words = "Error adding/updating listener(s) capture_b: no such filter";
    rig.nack(&first, &[], words);
    let Some(Heard::Refused(refusal)) = rig.heard.clone() else { panic!("{:?}", rig.heard) };
    assert_eq!(refusal.kind, LDS);
    assert_eq!((refusal.words.as_str(), refusal.repeated), (words, false));
    assert_eq!(refusal.names, ["capture_b"]);
    let second = one(rig.publish(world.set(LDS, "capture_a", "2")));
    rig.nack(&second, &[], words);
    assert!(matches!(&rig.heard, Some(Heard::Refused(refusal)) if refusal.repeated));
    // Accepted in between: news again.
    let third = one(rig.publish(world.set(LDS, "capture_b", "2")));
    rig.ack(&third, &[]);
    let fourth = one(rig.publish(world.set(LDS, "capture_b", "3")));
    rig.nack(&fourth, &[], words);
    assert!(matches!(&rig.heard, Some(Heard::Refused(refusal)) if !refusal.repeated));
}

#[test]
fn s06_a_refusal_of_what_is_not_known_is_harmless() {
    let mut world = World::default();
    world.set(LDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    rig.ack(&first, &[]);
    expect(&rig.nack(&first, &[], "too late"), &[]);
    assert_eq!(rig.heard, Some(Heard::Fine));
    expect(&rig.publish(&mut world), &[]);
}

#[test]
fn s06_a_refused_removal_is_tried_again() {
    let mut world = World::default();
    world.set(LDS, "a", "1").set(LDS, "b", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    rig.ack(&first, &[]);
    let gone = one(rig.publish(world.remove(LDS, "a")));
    rig.nack(&gone, &[], "I like it");
    expect(&rig.publish(world.set(LDS, "b", "2")), &[(LDS, &["b"], &["a"])]);
}

#[test]
fn s06_s19_what_names_no_refused_cluster_goes_on() {
    for (mut world, mut rig) in [sotw(), delta()] {
        let clusters: &[&str] = if rig.protocol == Protocol::Sotw { &["a", "b"] } else { &["b"] };
        world.service("b", "1").set(LDS, "l", "2").set(RDS, "t", "2");
        // They might name the new cluster, so they wait for its endpoints, which the client asks for
        // when it has taken in the cluster.
        let step = rig.publish(&mut world);
        expect(&step, &[(CDS, clusters, &[])]);
        let rest = rig.nack(&one(step), &[], "Error adding/updating cluster(s) b: no such filter");
        expect(&rest, &[(LDS, &["l"], &[]), (RDS, &["t"], &[])]);
        settle(&mut rig, &rest);
        expect(&rig.publish(world.set(LDS, "l", "3")), &[(LDS, &["l"], &[])]);
    }
}

#[test]
fn s06_s19_after_a_refusal_without_names_the_rest_waits_no_longer_than_for_a_silent_client() {
    for (mut world, mut rig) in [sotw(), delta()] {
        let step = rig.publish(world.service("b", "1").set(LDS, "l", "2"));
        expect(&rig.nack(&one(step), &[], "no"), &[]);
        expect(&rig.wait(ENDPOINTS / 2), &[]);
        expect(&rig.wait(ENDPOINTS / 2), &[(LDS, &["l"], &[])]);
    }
}

#[test]
fn s06_s20_what_was_refused_goes_with_changed_endpoints_that_a_changed_cluster_needs() {
    let cases: [(_, &[&str], &[&str]); 2] =
        [(sotw(), &["a", "b"], &["a", "b"]), (delta(), &["b"], &[])];
    for ((mut world, mut rig), more, same) in cases {
        let step = one(rig.publish(world.set(EDS, "a", "2").set(EDS, "b", "2")));
        let step = one(rig.ack(&step, more));
        expect(std::slice::from_ref(&step), &[(EDS, &["b"], &[])]);
        expect(&rig.ack(&step, same), &[]);
        let step = one(rig.publish(world.set(EDS, "a", "3").set(EDS, "b", "3")));
        expect(&rig.nack(&step, same, "no"), &[]);
        let step = rig.publish(world.service("a", "4"));
        expect(&step, &[(CDS, &["a"], &[]), (EDS, &["a", "b"], &[])]);
    }
}
