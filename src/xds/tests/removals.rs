//! Order of what goes: statement 19.

use std::time::Duration;

use super::super::Version;
use super::rig::{Rig, body, expect, one};
use super::warm::{delta, settle, sotw};
use super::world::{CDS, EDS, LDS, RDS, VHDS};

#[test]
fn s19_a_cluster_goes_after_what_named_it_was_accepted() {
    let (mut world, mut rig) = delta();
    world.service("b", "1");
    let added = rig.publish(&mut world);
    settle(&mut rig, &added);
    let added = rig.change(EDS, &["b"], &[]);
    settle(&mut rig, &added);
    let step = rig.publish(world.remove(CDS, "a").remove(EDS, "a").set(RDS, "t", "2"));
    expect(&step, &[(RDS, &["t"], &[])]);
    // Accepted: the cluster goes, and its endpoints after it.
    expect(&rig.ack(&step[0], &[]), &[(CDS, &[], &["a"]), (EDS, &[], &["a"])]);
}

#[test]
fn s19_a_cluster_stays_while_what_named_it_is_refused_or_unanswered() {
    for refuse in [true, false] {
        let (mut world, mut rig) = delta();
        let step = rig.publish(world.remove(CDS, "a").set(LDS, "l", "2").set(VHDS, "t/v", "2"));
        expect(&step, &[(LDS, &["l"], &[]), (VHDS, &["t/v"], &[])]);
        expect(&rig.ack(&step[0], &[]), &[]);
        if refuse {
            expect(&rig.nack(&step[1], &[], "no"), &[]);
            // The old virtual host still names the cluster, for as long as it takes.
            expect(&rig.wait(Duration::from_hours(1)), &[]);
            let step = rig.publish(world.set(VHDS, "t/v", "3"));
            expect(&step, &[(VHDS, &["t/v"], &[])]);
            expect(&rig.ack(&step[0], &[]), &[(CDS, &[], &["a"])]);
        } else {
            // Messages arrive in order; one that is never answered was at least handed over.
            expect(&rig.wait(Duration::from_millis(4900)), &[]);
            expect(&rig.wait(Duration::from_millis(200)), &[(CDS, &[], &["a"])]);
        }
    }
}

#[test]
fn s19_in_sotw_a_cluster_stays_listed_until_nothing_names_it() {
    let (mut world, mut rig) = sotw();
    world.remove(CDS, "a").service("b", "1").set(RDS, "t", "2");
    let step = rig.publish(&mut world);
    expect(&step, &[(CDS, &["b", "a"], &[])]);
    let step2 = rig.ask(EDS, &["a", "b"]);
    expect(&step2, &[(EDS, &["b"], &[]), (RDS, &["t"], &[])]);
    expect(&rig.ack(&step[0], &[]), &[]);
    expect(&rig.ack(&step2[1], &["t"]), &[(CDS, &["b"], &[])]);
    // One that returns meanwhile is the new one.
    let (mut world, mut rig) = sotw();
    let step = rig.publish(world.remove(CDS, "a").set(CDS, "b", "1").set(RDS, "t", "2"));
    expect(&step, &[(CDS, &["b", "a"], &[]), (RDS, &["t"], &[])]);
    rig.ack(&step[0], &[]);
    let step = rig.publish(world.service("a", "3"));
    expect(&step, &[(CDS, &["a", "b"], &[]), (EDS, &["a"], &[])]);
    assert_eq!(super::rig::body(&step[0], "a"), "3");
}

#[test]
fn s19_routes_go_after_the_listener_that_named_them() {
    let (mut world, mut rig) = delta();
    let step = rig.publish(world.remove(RDS, "t").remove(VHDS, "t/v").set(LDS, "l", "2"));
    expect(&step, &[(LDS, &["l"], &[])]);
    expect(&rig.ack(&step[0], &[]), &[(RDS, &[], &["t"])]);
}

#[test]
fn s19_virtual_hosts_stay_while_the_client_names_their_route_configuration() {
    let (mut world, mut rig) = delta();
    world.remove(RDS, "t").remove(VHDS, "t/v").remove(CDS, "a").remove(EDS, "a");
    world.set(LDS, "l", "2").set(RDS, "u", "1").set(VHDS, "u/v", "1");
    let step = rig.publish(&mut world);
    expect(&step, &[(LDS, &["l"], &[])]);
    // The new listener warms: the old one still serves.
    let joined = rig.change(RDS, &["u"], &[]);
    expect(&joined, &[(RDS, &["u"], &[]), (VHDS, &["u/v"], &[])]);
    expect(&rig.ack(&step[0], &[]), &[]);
    expect(&rig.ack(&joined[1], &[]), &[]);
    let gone = one(rig.ack(&joined[0], &[]));
    expect(std::slice::from_ref(&gone), &[(RDS, &[], &["t"])]);
    rig.ack(&gone, &[]);
    // What is in the new table comes and goes meanwhile, and the cluster of the old one stays.
    let step = rig.publish(world.set(VHDS, "u/w", "1").remove(VHDS, "u/v"));
    expect(&step, &[(VHDS, &["u/w"], &["u/v"])]);
    expect(&rig.ack(&step[0], &[]), &[]);
    expect(&rig.wait(Duration::from_mins(1)), &[]);
    // The old listener is drained.
    let step = rig.change(RDS, &[], &["t"]);
    expect(&step, &[(VHDS, &[], &["t/v"])]);
    expect(&rig.ack(&step[0], &[]), &[(CDS, &[], &["a"]), (EDS, &[], &["a"])]);
}

#[test]
fn s19_a_route_configuration_that_returns_has_its_virtual_hosts_still() {
    let (mut world, mut rig) = delta();
    let step = rig.publish(world.remove(RDS, "t").remove(VHDS, "t/v"));
    expect(&step, &[(RDS, &[], &["t"])]);
    rig.ack(&step[0], &[]);
    // An Envoy that kept the configuration has them; one that dropped it needs them.
    let step = rig.publish(world.set(RDS, "t", "1").set(VHDS, "t/v", "1"));
    expect(&step, &[(RDS, &["t"], &[]), (VHDS, &["t/v"], &[])]);
    for response in &step {
        expect(&rig.ack(response, &[]), &[]);
    }
    // Or it returns with other ones.
    let step = rig.publish(world.remove(RDS, "t").remove(VHDS, "t/v"));
    rig.ack(&step[0], &[]);
    let step = rig.publish(world.set(RDS, "t", "1").set(VHDS, "t/v", "2"));
    expect(&step, &[(RDS, &["t"], &[]), (VHDS, &["t/v"], &[])]);
}

#[test]
fn s19_after_a_reconnect_a_cluster_waits_for_the_routes_of_this_stream() {
    let (mut world, _) = delta();
    world.remove(CDS, "a").set(RDS, "t", "2");
    let old = Version::of(&bytes::Bytes::from_static(b"1").into()).to_string();
    let mut rig = Rig::delta(&mut world);
    expect(&rig.resume(CDS, &[], &[("a", &old)]), &[]);
    expect(&rig.resume(EDS, &["a"], &[("a", &old)]), &[]);
    expect(&rig.resume(LDS, &[], &[("l", &old)]), &[]);
    let routes = one(rig.resume(RDS, &["t"], &[("t", &old)]));
    expect(&rig.resume(VHDS, &[], &[("t/v", &old)]), &[]);
    expect(&rig.wait(Duration::from_secs(1)), &[]);
    expect(&rig.ack(&routes, &[]), &[(CDS, &[], &["a"])]);
    // A client that subscribes to clusters alone is not kept waiting for long.
    let mut rig = Rig::delta(&mut world);
    expect(&rig.resume(CDS, &[], &[("a", &old)]), &[]);
    let deadline = rig.session.deadline(rig.now).unwrap() - rig.now;
    assert!(deadline <= Duration::from_millis(300));
    expect(&rig.wait(deadline), &[(CDS, &[], &["a"])]);
}

#[test]
fn s19_s20_a_cluster_whose_removal_waits_stays_as_the_client_has_it() {
    let (mut world, mut rig) = sotw();
    let step = rig.publish(world.cluster("a", "2"));
    expect(&step, &[(CDS, &["a"], &[]), (EDS, &["a"], &[])]);
    // A form that the client never gets, since its answer is awaited, and then none.
    expect(&rig.publish(world.cluster("a", "3")), &[]);
    world.remove(CDS, "a").remove(EDS, "a").service("b", "1").set(LDS, "l", "2");
    expect(&rig.publish(&mut world), &[]);
    // The endpoints are gone: in another form it would not get warm while the listener names it.
    let next = rig.ack(&step[0], &[]);
    expect(&next, &[(CDS, &["b", "a"], &[])]);
    assert_eq!(body(&next[0], "a"), "2");
}
