//! What belongs together: statements 20 to 22.

use super::super::Version;
use super::rig::{Rig, expect, one, said};
use super::warm::{delta, settle, sotw};
use super::world::{CDS, EDS, LDS, RDS, VHDS, World};

#[test]
fn s20_a_changed_cluster_is_followed_by_its_endpoints() {
    let (mut world, mut rig) = delta();
    let step = rig.publish(world.cluster("a", "2"));
    expect(&step, &[(CDS, &["a"], &[]), (EDS, &["a"], &[])]);
    let (mut world, mut rig) = sotw();
    let step = rig.publish(world.cluster("a", "2"));
    expect(&step, &[(CDS, &["a"], &[]), (EDS, &["a"], &[])]);
    // Even while endpoints are not acknowledged: the cluster is not warm without them.
    let (mut world, mut rig) = delta();
    let step = rig.publish(world.set(EDS, "a", "2"));
    expect(&step, &[(EDS, &["a"], &[])]);
    expect(&rig.publish(world.cluster("a", "2")), &[(CDS, &["a"], &[]), (EDS, &["a"], &[])]);
}

#[test]
fn s20_also_when_it_changed_while_the_client_was_away() {
    let (mut world, _) = delta();
    world.cluster("a", "2");
    let old = Version::of(&bytes::Bytes::from_static(b"1").into()).to_string();
    let mut rig = Rig::delta(&mut world);
    expect(&rig.resume(CDS, &[], &[("a", &old)]), &[(CDS, &["a"], &[])]);
    expect(&rig.resume(EDS, &["a"], &[("a", &old)]), &[(EDS, &["a"], &[])]);
}

#[test]
fn s21_what_is_sent_together_is_of_one_snapshot() {
    let (mut world, mut rig) = delta();
    let step = rig.publish(world.service("a", "2").set(LDS, "l", "2").set(RDS, "t", "2"));
    assert!(step.iter().all(|response| response.version == world.generation.to_string()));
    // While nothing was answered, only the newest state is kept for later.
    for round in 3..10 {
        let body = round.to_string();
        world.service("a", &body).set(LDS, "l", &body).set(RDS, "t", &body);
        let responses = rig.publish(&mut world);
        assert!(responses.is_empty(), "{:?}", responses.iter().map(said).collect::<Vec<_>>());
    }
    let mut next = Vec::new();
    for response in &step {
        next.extend(rig.ack(response, &[]));
    }
    assert!(
        next.iter()
            .flat_map(|r| r.resources.iter())
            .all(|r| { r.body().to_bytes().as_ref() == b"9" })
    );
    assert_eq!(next.len(), 4);
}

#[test]
fn s22_virtual_hosts_follow_the_route_configuration_that_joins() {
    let (mut world, mut rig) = delta();
    // A new pod's listener names a new table; its virtual hosts wait for it.
    world.set(LDS, "l2", "1").set(RDS, "u", "1").set(VHDS, "u/v", "1").set(VHDS, "u/w", "1");
    let step = rig.publish(world.set(VHDS, "t/v", "2"));
    expect(&step, &[(LDS, &["l2"], &[]), (VHDS, &["t/v"], &[])]);
    settle(&mut rig, &step);
    let step = rig.change(RDS, &["u"], &[]);
    expect(&step, &[(RDS, &["u"], &[]), (VHDS, &["u/v", "u/w"], &[])]);
    settle(&mut rig, &step);
    // Away and back: the client has forgotten them, and asks for none.
    expect(&rig.change(RDS, &[], &["u"]), &[]);
    let step = rig.change(RDS, &["u"], &[]);
    expect(&step, &[(RDS, &["u"], &[]), (VHDS, &["u/v", "u/w"], &[])]);
    settle(&mut rig, &step);
    // A domain that moves between two moves in one response.
    world.set(VHDS, "u/v", "2").remove(VHDS, "u/w").set(VHDS, "u/x", "1");
    expect(&rig.publish(&mut world), &[(VHDS, &["u/v", "u/x"], &["u/w"])]);
}

#[test]
fn s22_the_first_answer_waits_for_the_route_configuration() {
    let mut world = World::default();
    world.set(RDS, "t", "1").set(VHDS, "t/v", "1").set(VHDS, "a/b/any", "1");
    let mut rig = Rig::delta(&mut world);
    let step = rig.ask(RDS, &["a/b"]);
    expect(&step, &[(RDS, &[], &["a/b"])]);
    settle(&mut rig, &step);
    // An empty answer would let the listener open without any virtual host.
    expect(&rig.ask(VHDS, &[]), &[]);
    let step = rig.change(RDS, &["t"], &[]);
    expect(&step, &[(RDS, &["t"], &[]), (VHDS, &["t/v"], &[])]);
    settle(&mut rig, &step);
    // Everything before the last slash is the name of the route configuration.
    let step = rig.publish(world.set(RDS, "a/b", "1"));
    expect(&step, &[(RDS, &["a/b"], &[]), (VHDS, &["a/b/any"], &[])]);
}

#[test]
fn s22_virtual_hosts_are_never_split_and_other_large_answers_are() {
    let big = "x".repeat(1_500_000);
    for kind in [VHDS, CDS, LDS] {
        let mut world = World::default();
        for name in ["t/a", "t/b", "t/c", "t/d", "t/e"] {
            world.set(kind, name, &big);
        }
        let mut rig = Rig::delta(&mut world);
        let responses = rig.ask(kind, &[]);
        if kind == VHDS {
            assert_eq!(one(responses).resources.len(), 5);
        } else {
            let sizes: Vec<_> = responses.iter().map(|r| r.resources.len()).collect();
            assert_eq!(sizes, [2, 2, 1]);
            // Only when all parts are answered is the next push due.
            for response in &responses {
                expect(&rig.publish(world.set(kind, "t/a", &response.nonce.to_string())), &[]);
                let next = rig.ack(response, &[]);
                assert_eq!(next.len(), usize::from(response.nonce == responses[2].nonce));
            }
        }
    }
}
