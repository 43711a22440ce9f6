//! State of the world: statements 6 to 12.

use super::rig::{Rig, expect, one};
use super::world::{CDS, EDS, LDS, RDS, World};

#[test]
fn s06_ack_is_answered_with_silence() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(EDS, "a", "1");
    let mut rig = Rig::sotw(&mut world);
    let clusters = one(rig.ask(CDS, &[]));
    expect(&rig.ack(&clusters, &[]), &[]);
    expect(&rig.ack(&clusters, &[]), &[]);
    let endpoints = one(rig.ask(EDS, &["a"]));
    expect(&rig.ack(&endpoints, &["a"]), &[]);
}

#[test]
fn s07_a_stale_nonce_is_absorbed() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(EDS, "a", "1").set(EDS, "b", "1");
    let mut rig = Rig::sotw(&mut world);
    let clusters = one(rig.ask(CDS, &[]));
    let endpoints = one(rig.ask(EDS, &["a"]));
    // An answer under another type's URL, with the names of its own type.
    let wrong = endpoints.nonce.to_string();
    expect(&rig.with(&wrong, CDS, &["a"], &[]), &[]);
    expect(&rig.ack(&clusters, &[]), &[]);
    // It counts as the answer to the response that it names, and the wildcard is as it was.
    let push = rig.publish(world.set(CDS, "b", "1").set(EDS, "a", "2"));
    expect(&push, &[(CDS, &["a", "b"], &[]), (EDS, &["a"], &[])]);
    // A request that was overtaken by a response says nothing.
    let old = endpoints.nonce.to_string();
    expect(&rig.with(&old, EDS, &["a", "b"], &[]), &[]);
    expect(&rig.with("no nonce of ours", EDS, &["a", "b"], &[]), &[]);
    expect(&rig.ack(&push[1], &["a", "b"]), &[(EDS, &["b"], &[])]);
}

#[test]
fn s08_a_name_added_is_sent_and_a_name_dropped_is_forgotten() {
    let mut world = World::default();
    world.set(EDS, "a", "1").set(EDS, "b", "1");
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(EDS, &["a"]));
    let second = one(rig.ack(&first, &["a", "b"]));
    expect(std::slice::from_ref(&second), &[(EDS, &["b"], &[])]);
    expect(&rig.ack(&second, &["a"]), &[]);
    // Nothing about what was dropped.
    expect(&rig.publish(world.set(EDS, "b", "2")), &[]);
    let third = one(rig.ack(&second, &["a", "b"]));
    expect(std::slice::from_ref(&third), &[(EDS, &["b"], &[])]);
    // Dropped and wanted again at an unchanged version: sent again.
    rig.ack(&third, &["a"]);
    expect(&rig.ack(&third, &["b", "a"]), &[(EDS, &["b"], &[])]);
}

#[test]
fn s08_listeners_and_clusters_are_sent_whole_when_a_name_is_added() {
    let mut world = World::default();
    world.set(LDS, "a", "1").set(LDS, "b", "1").set(LDS, "c", "1");
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(LDS, &["a"]));
    let second = one(rig.ack(&first, &["b", "a"]));
    expect(std::slice::from_ref(&second), &[(LDS, &["a", "b"], &[])]);
    // Absence is an answer where the response is the whole state.
    expect(&rig.ack(&second, &["a", "b", "x"]), &[(LDS, &["a", "b"], &[])]);
}

#[test]
fn s08_an_empty_name_is_no_wildcard() {
    let mut world = World::default();
    world.set(CDS, "a", "1");
    let mut rig = Rig::sotw(&mut world);
    expect(&rig.ask(CDS, &[""]), &[(CDS, &[], &[])]);
    expect(&rig.publish(world.set(CDS, "a", "2")), &[]);
}

#[test]
fn s08_a_request_before_any_response_needs_no_nonce() {
    let mut world = World::default();
    world.set(EDS, "b", "1");
    let mut rig = Rig::sotw(&mut world);
    expect(&rig.ask(EDS, &["a"]), &[]);
    expect(&rig.ask(EDS, &["a", "b"]), &[(EDS, &["b"], &[])]);
    // One that crossed with a response: the names count, nothing is acknowledged.
    expect(&rig.publish(world.set(EDS, "a", "1").set(EDS, "c", "1")), &[]);
    expect(&rig.ask(EDS, &["a", "b", "c"]), &[(EDS, &["a", "c"], &[])]);
}

#[test]
fn s09_absent_names_are_left_out_and_pushed_when_they_appear() {
    let mut world = World::default();
    world.set(EDS, "a", "1");
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(EDS, &["a", "b"]));
    expect(std::slice::from_ref(&first), &[(EDS, &["a"], &[])]);
    rig.ack(&first, &["a", "b"]);
    expect(&rig.publish(world.set(EDS, "b", "1")), &[(EDS, &["b"], &[])]);
}

#[test]
fn s10_any_change_of_listeners_and_clusters_sends_all_of_them() {
    for kind in [CDS, LDS] {
        let mut world = World::default();
        world.set(kind, "a", "1").set(kind, "b", "1");
        let mut rig = Rig::sotw(&mut world);
        let mut last = one(rig.ask(kind, &[]));
        let mut step = |rig: &mut Rig, world: &mut World, names: &[&str]| {
            rig.ack(&last, &[]);
            last = one(rig.publish(world));
            expect(std::slice::from_ref(&last), &[(kind, names, &[])]);
        };
        step(&mut rig, world.set(kind, "b", "2"), &["a", "b"]);
        step(&mut rig, world.set(kind, "c", "1"), &["a", "b", "c"]);
        step(&mut rig, world.remove(kind, "a"), &["b", "c"]);
        step(&mut rig, world.remove(kind, "b").remove(kind, "c"), &[]);
    }
}

#[test]
fn s10_of_routes_and_endpoints_the_changed_ones_suffice_and_absence_says_nothing() {
    for kind in [RDS, EDS] {
        let mut world = World::default();
        world.set(kind, "a", "1").set(kind, "b", "1");
        let mut rig = Rig::sotw(&mut world);
        let first = one(rig.ask(kind, &["a", "b"]));
        rig.ack(&first, &["a", "b"]);
        let push = one(rig.publish(world.set(kind, "b", "2")));
        expect(std::slice::from_ref(&push), &[(kind, &["b"], &[])]);
        rig.ack(&push, &["a", "b"]);
        expect(&rig.publish(world.remove(kind, "a")), &[]);
        // It comes back as it was; the client may have dropped it with what named it.
        expect(&rig.publish(world.set(kind, "a", "1")), &[(kind, &["a"], &[])]);
    }
}

#[test]
fn s11_an_empty_wildcard_gets_an_empty_response_once() {
    for kind in [CDS, LDS] {
        let mut world = World::default();
        let mut rig = Rig::sotw(&mut world);
        let first = one(rig.ask(kind, &[]));
        expect(std::slice::from_ref(&first), &[(kind, &[], &[])]);
        expect(&rig.ack(&first, &[]), &[]);
        expect(&rig.publish(&mut world), &[]);
    }
}

#[test]
fn s12_never_a_name_is_a_wildcard_for_listeners_and_clusters_alone() {
    let mut world = World::default();
    for kind in [CDS, EDS, LDS, RDS] {
        world.set(kind, "a", "1").set(kind, "b", "1");
    }
    for kind in [CDS, LDS] {
        let mut rig = Rig::sotw(&mut world);
        expect(&rig.ask(kind, &[]), &[(kind, &["a", "b"], &[])]);
    }
    for kind in [EDS, RDS] {
        let mut rig = Rig::sotw(&mut world);
        expect(&rig.ask(kind, &[]), &[]);
        expect(&rig.ask(kind, &["b"]), &[(kind, &["b"], &[])]);
    }
    for kind in [CDS, EDS, LDS, RDS] {
        let mut rig = Rig::sotw(&mut world);
        expect(&rig.ask(kind, &["*"]), &[(kind, &["a", "b"], &[])]);
    }
}

#[test]
fn s12_after_a_name_an_empty_list_means_nothing() {
    for kind in [CDS, LDS, EDS] {
        for names in [&["a"][..], &["*"], &["*", "a"]] {
            let mut world = World::default();
            world.set(kind, "a", "1");
            let mut rig = Rig::sotw(&mut world);
            let first = one(rig.ask(kind, names));
            expect(&rig.ack(&first, &[]), &[]);
            expect(&rig.publish(world.set(kind, "a", "2").set(kind, "b", "2")), &[]);
            expect(&rig.ack(&first, &["a"]), &[(kind, &["a"], &[])]);
        }
    }
}

#[test]
fn s12_names_end_the_legacy_wildcard_and_the_star_keeps_it() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(CDS, "b", "1");
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(CDS, &[]));
    let second = one(rig.ack(&first, &["*", "x"]));
    expect(std::slice::from_ref(&second), &[(CDS, &["a", "b"], &[])]);
    let third = one(rig.ack(&second, &["a"]));
    expect(std::slice::from_ref(&third), &[(CDS, &["a"], &[])]);
    expect(&rig.ack(&third, &["a"]), &[]);
    expect(&rig.publish(world.set(CDS, "b", "2")), &[]);
    expect(&rig.publish(world.set(CDS, "a", "2")), &[(CDS, &["a"], &[])]);
}

#[test]
fn s23_on_demand_clusters_come_and_go_beside_the_wildcard() {
    let mut world = World::default();
    world.set(CDS, "a", "1");
    let mut rig = Rig::sotw(&mut world);
    let first = one(rig.ask(CDS, &[]));
    // Absence is answered at once, even while the last response is not acknowledged.
    let second = one(rig.ack(&first, &["*", "on-demand"]));
    expect(std::slice::from_ref(&second), &[(CDS, &["a"], &[])]);
    rig.ack(&second, &["*", "on-demand"]);
    let third = one(rig.publish(world.set(CDS, "on-demand", "1")));
    expect(std::slice::from_ref(&third), &[(CDS, &["a", "on-demand"], &[])]);
    expect(&rig.ack(&third, &["*"]), &[]);
}
