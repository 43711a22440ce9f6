//! Delta: statements 6, 7 and 11 to 18.

use super::super::{Kind, Version};
use super::rig::{Rig, body, expect, one};
use super::world::{CDS, EDS, LDS, RDS, World};

fn version(body: &str) -> String {
    Version::of(&bytes::Bytes::copy_from_slice(body.as_bytes()).into()).to_string()
}

#[test]
fn s06_ack_is_answered_with_silence() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(EDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let clusters = one(rig.ask(CDS, &[]));
    expect(&rig.ack(&clusters, &[]), &[]);
    expect(&rig.ack(&clusters, &[]), &[]);
    let endpoints = one(rig.ask(EDS, &["a"]));
    expect(&rig.ack(&endpoints, &[]), &[]);
}

#[test]
fn s11_an_empty_wildcard_gets_an_empty_response_once() {
    for kind in [CDS, LDS, Kind::VirtualHost] {
        let mut world = World::default();
        let mut rig = Rig::delta(&mut world);
        let first = one(rig.ask(kind, &[]));
        expect(std::slice::from_ref(&first), &[(kind, &[], &[])]);
        expect(&rig.ack(&first, &[]), &[]);
        expect(&rig.publish(&mut world), &[]);
    }
}

#[test]
fn s12_never_a_name_is_a_wildcard_for_some_types() {
    let mut world = World::default();
    for kind in Kind::ALL {
        world.set(kind, "t/a", "1");
        let mut rig = Rig::delta(&mut world);
        let responses = rig.ask(kind, &[]);
        if kind.wildcard_by_default() {
            expect(&responses, &[(kind, &["t/a"], &[])]);
        } else {
            expect(&responses, &[]);
        }
        let mut rig = Rig::delta(&mut world);
        expect(&rig.ask(kind, &["*"]), &[(kind, &["t/a"], &[])]);
    }
}

#[test]
fn s13_the_legacy_wildcard_survives_a_name_and_ends_with_the_star() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(CDS, "b", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(CDS, &[]));
    rig.ack(&first, &[]);
    let second = one(rig.change(CDS, &["x"], &[]));
    expect(std::slice::from_ref(&second), &[(CDS, &[], &["x"])]);
    rig.ack(&second, &[]);
    let third = one(rig.publish(world.set(CDS, "b", "2")));
    expect(std::slice::from_ref(&third), &[(CDS, &["b"], &[])]);
    rig.ack(&third, &[]);
    // An Envoy says so when it begins to name things; nothing is news.
    expect(&rig.change(CDS, &["*"], &[]), &[]);
    expect(&rig.change(CDS, &[], &["*"]), &[]);
    expect(&rig.publish(world.set(CDS, "b", "3")), &[]);
    expect(&rig.publish(world.set(CDS, "x", "1")), &[(CDS, &["x"], &[])]);
    // And it begins anew.
    expect(&rig.change(CDS, &["*"], &[]), &[(CDS, &["a", "b"], &[])]);
}

#[test]
fn s13_unsubscribing_a_name_under_a_wildcard_says_where_it_stands() {
    let mut world = World::default();
    world.set(CDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(CDS, &["*", "a", "x"]));
    expect(std::slice::from_ref(&first), &[(CDS, &["a"], &["x"])]);
    rig.ack(&first, &[]);
    expect(&rig.change(CDS, &[], &["a"]), &[(CDS, &["a"], &[])]);
    expect(&rig.change(CDS, &[], &["x"]), &[(CDS, &[], &["x"])]);
    expect(&rig.change(CDS, &[], &["x", "never heard of"]), &[]);
}

#[test]
fn s14_initial_versions_bring_what_differs_or_is_missing_or_gone() {
    for (kind, names) in [(LDS, &[][..]), (LDS, &["*"]), (LDS, &["a", "b", "c", "d", "e"])] {
        let mut world = World::default();
        world.set(kind, "a", "1").set(kind, "b", "2").set(kind, "c", "1").set(kind, "e", "1");
        let mut rig = Rig::delta(&mut world);
        let has = [
            ("a", version("1")),
            ("b", version("1")),
            ("d", version("1")),
            ("e", "a version of another server".into()),
        ];
        let has: Vec<_> = has.iter().map(|(name, version)| (*name, version.as_str())).collect();
        expect(&rig.resume(kind, names, &has), &[(kind, &["b", "c", "e"], &["d"])]);
    }
}

#[test]
fn s14_a_proxy_that_is_up_to_date_hears_nothing() {
    let mut world = World::default();
    for kind in Kind::ALL {
        world.set(kind, "t/a", "1").set(kind, "t/b", "1");
    }
    let mut rig = Rig::delta(&mut world);
    let same = version("1");
    let has = [("t/a", same.as_str()), ("t/b", same.as_str())];
    for kind in Kind::ALL {
        let names: &[&str] = if kind.wildcard_by_default() { &[] } else { &["t/a", "t/b"] };
        expect(&rig.resume(kind, names, &has), &[]);
    }
    // What it did not subscribe to does not matter.
    let mut rig = Rig::delta(&mut world);
    expect(&rig.resume(EDS, &["t/a"], &[("t/a", same.as_str()), ("t/z", "1")]), &[]);
    // Only the first message of a type counts.
    let mut rig = Rig::delta(&mut world);
    expect(&rig.ask(RDS, &["t/a"]), &[(RDS, &["t/a"], &[])]);
    expect(&rig.resume(RDS, &["t/b"], &has), &[(RDS, &["t/b"], &[])]);
}

#[test]
fn s15_subscribing_again_sends_again_and_absence_is_told() {
    let mut world = World::default();
    world.set(EDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(EDS, &["a", "x"]));
    expect(std::slice::from_ref(&first), &[(EDS, &["a"], &["x"])]);
    let second = one(rig.ack(&first, &["a"]));
    expect(std::slice::from_ref(&second), &[(EDS, &["a"], &[])]);
    rig.ack(&second, &[]);
    // The subscription to what was absent stays.
    let third = one(rig.publish(world.set(EDS, "x", "1")));
    expect(std::slice::from_ref(&third), &[(EDS, &["x"], &[])]);
    rig.ack(&third, &[]);
    expect(&rig.change(EDS, &[], &["never heard of", "a"]), &[]);
    expect(&rig.publish(world.set(EDS, "a", "2")), &[]);
    expect(&rig.change(EDS, &["a"], &[]), &[(EDS, &["a"], &[])]);
}

#[test]
fn s16_a_stale_nonce_still_changes_the_subscription() {
    let mut world = World::default();
    world.set(EDS, "a", "1").set(EDS, "b", "1").set(EDS, "c", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(EDS, &["a"]));
    // An acknowledgement may carry a change.
    let second = one(rig.ack(&first, &["b"]));
    expect(std::slice::from_ref(&second), &[(EDS, &["b"], &[])]);
    // So may a request with a nonce that is none, or not the last, or foreign.
    for nonce in ["", &first.nonce.to_string(), "what?"] {
        expect(&rig.with(nonce, EDS, &["c"], &[]), &[(EDS, &["c"], &[])]);
        expect(&rig.with(nonce, EDS, &[], &["c"]), &[]);
    }
    expect(&rig.publish(world.set(EDS, "c", "2")), &[]);
}

#[test]
fn s17_removals_come_from_what_was_sent() {
    let mut world = World::default();
    world.set(LDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(LDS, &[]));
    // What came and went while the answer was awaited was never sent, and is not removed.
    expect(&rig.publish(world.set(LDS, "b", "1")), &[]);
    expect(&rig.publish(world.remove(LDS, "b")), &[]);
    expect(&rig.ack(&first, &[]), &[]);
    let gone = one(rig.publish(world.remove(LDS, "a")));
    expect(std::slice::from_ref(&gone), &[(LDS, &[], &["a"])]);
    expect(&rig.ack(&gone, &[]), &[]);
    // On the next stream the client knows nothing of it.
    let mut rig = Rig::delta(&mut world);
    expect(&rig.ask(LDS, &[]), &[(LDS, &[], &[])]);
}

#[test]
fn s18_versions_come_from_content() {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(CDS, "b", "1");
    let mut again = World { generation: 77, ..World::default() };
    again.set(CDS, "b", "1").set(CDS, "a", "1");
    let versions = |world: &mut World| {
        let response = one(Rig::delta(world).ask(CDS, &[]));
        response.resources.iter().map(|r| r.version().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(versions(&mut world), versions(&mut again));
    assert_eq!(versions(&mut world), [version("1"), version("1")]);
}

#[test]
fn s23_on_demand_clusters_come_and_go_beside_the_wildcard() {
    let mut world = World::default();
    world.set(CDS, "a", "1");
    let mut rig = Rig::delta(&mut world);
    let first = one(rig.ask(CDS, &[]));
    // Absence is answered at once, even while the last response is not acknowledged.
    expect(&rig.change(CDS, &["*", "x"], &[]), &[(CDS, &[], &["x"])]);
    rig.ack(&first, &[]);
    let come = one(rig
        .wait(std::time::Duration::from_secs(6))
        .into_iter()
        .chain(rig.publish(world.set(CDS, "x", "1")))
        .collect());
    expect(std::slice::from_ref(&come), &[(CDS, &["x"], &[])]);
    assert_eq!(body(&come, "x"), "1");
    rig.ack(&come, &[]);
    expect(&rig.change(CDS, &[], &["x"]), &[(CDS, &["x"], &[])]);
}

#[test]
fn s30_equal_content_is_no_push() {
    let name = |kind| if kind == RDS { "t" } else { "t/a" };
    let mut world = World::default();
    for kind in Kind::ALL {
        world.set(kind, name(kind), "1");
    }
    let mut rig = Rig::delta(&mut world);
    for kind in Kind::ALL {
        let response = one(rig.ask(kind, &["*"]));
        rig.ack(&response, &[]);
    }
    for _ in 0..200 {
        for kind in Kind::ALL {
            world.set(kind, name(kind), "1");
        }
        expect(&rig.publish(&mut world), &[]);
    }
    // There and back while an answer is awaited: nothing.
    let push = one(rig.publish(world.set(CDS, "t/a", "2")));
    expect(&rig.publish(world.set(CDS, "t/a", "3")), &[]);
    expect(&rig.publish(world.set(CDS, "t/a", "2")), &[]);
    expect(&rig.ack(&push, &[]), &[]);
}
