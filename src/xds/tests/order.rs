//! Order across types: statements 19 to 22.

use std::time::Duration;

use super::super::{Kind, Response, Version};
use super::rig::{Rig, expect, one, said};
use super::world::World;

const CDS: Kind = Kind::Cluster;
const EDS: Kind = Kind::Endpoints;
const LDS: Kind = Kind::Listener;
const RDS: Kind = Kind::Routes;
const VHDS: Kind = Kind::VirtualHost;

/// A stream as an Envoy has it when it is warm: everything subscribed and acknowledged.
fn warm(rig: &mut Rig) {
    let names = |kind: Kind| -> &[&str] {
        match kind {
            Kind::Endpoints => &["a"],
            Kind::Routes => &["t"],
            _ => &[],
        }
    };
    for kind in Kind::ALL {
        for response in rig.ask(kind, names(kind)) {
            settle(rig, &[response]);
        }
    }
    rig.wait(Duration::from_secs(1));
}

fn settle(rig: &mut Rig, responses: &[Response]) {
    for response in responses {
        let names: &[&str] = match (rig.protocol, response.kind.unwrap()) {
            (super::super::Protocol::Sotw, Kind::Endpoints) => &["a"],
            (super::super::Protocol::Sotw, Kind::Routes) => &["t"],
            _ => &[],
        };
        expect(&rig.ack(response, names), &[]);
    }
}

fn world() -> World {
    let mut world = World::default();
    world.service("a", "1").set(LDS, "l", "1").set(RDS, "t", "1");
    world
}

fn delta() -> (World, Rig) {
    let mut world = world();
    world.set(VHDS, "t/v", "1");
    let mut rig = Rig::delta(&mut world);
    warm(&mut rig);
    (world, rig)
}

fn sotw() -> (World, Rig) {
    let mut world = world();
    let mut rig = Rig::sotw(&mut world);
    warm(&mut rig);
    (world, rig)
}

#[test]
fn s19_clusters_and_endpoints_go_before_what_names_them() {
    let (mut world, mut rig) = delta();
    world.service("a", "2").set(LDS, "l", "2").set(RDS, "t", "2").set(VHDS, "t/v", "2");
    let all = rig.publish(&mut world);
    // At once, and in this order; the clusters' acknowledgement comes when they are warm.
    let kinds: Vec<_> = all.iter().map(|response| response.kind.unwrap()).collect();
    assert_eq!(kinds, Kind::ALL);
    let (mut world, mut rig) = sotw();
    world.service("a", "2").set(LDS, "l", "2").set(RDS, "t", "2");
    let all = rig.publish(&mut world);
    let kinds: Vec<_> = all.iter().map(|response| response.kind.unwrap()).collect();
    assert_eq!(kinds, [CDS, EDS, LDS, RDS]);
}

#[test]
fn s19_what_may_name_a_new_cluster_waits_for_its_endpoints() {
    let (mut world, mut rig) = delta();
    world.service("b", "1").set(LDS, "l", "2").set(RDS, "t", "2").set(VHDS, "t/v", "2");
    let first = rig.publish(&mut world);
    expect(&first, &[(CDS, &["b"], &[])]);
    // Not for the acknowledgement.
    let rest = rig.change(EDS, &["b"], &[]);
    let wanted: [(Kind, &[&str], &[&str]); 4] =
        [(EDS, &["b"], &[]), (LDS, &["l"], &[]), (RDS, &["t"], &[]), (VHDS, &["t/v"], &[])];
    expect(&rest, &wanted);
    // A first request for something else waits as well.
    settle(&mut rig, &first);
    settle(&mut rig, &rest);
    expect(&rig.publish(world.service("c", "1").set(RDS, "u", "1")), &[(CDS, &["c"], &[])]);
    expect(&rig.change(RDS, &["u"], &[]), &[]);
    expect(&rig.change(EDS, &["c"], &[]), &[(EDS, &["c"], &[]), (RDS, &["u"], &[])]);
}

#[test]
fn s19_a_client_that_never_asks_for_endpoints_is_not_waited_for() {
    let (mut world, mut rig) = delta();
    expect(&rig.publish(world.service("b", "1").set(RDS, "t", "2")), &[(CDS, &["b"], &[])]);
    expect(&rig.wait(Duration::from_millis(1900)), &[]);
    let deadline = rig.session.deadline(rig.now).unwrap() - rig.now;
    assert!(deadline <= Duration::from_millis(100), "{deadline:?}");
    expect(&rig.wait(deadline), &[(RDS, &["t"], &[])]);
    // Nor one that does not subscribe to endpoints at all, nor a cluster that has none.
    let mut rig = Rig::delta(&mut world);
    expect(&rig.ask(CDS, &[]), &[(CDS, &["a", "b"], &[])]);
    expect(&rig.ask(LDS, &[]), &[(LDS, &["l"], &[])]);
    let (mut world, mut rig) = delta();
    world.cluster("dangling", "1").set(CDS, "original-dst", "1").set(LDS, "l", "2");
    expect(
        &rig.publish(&mut world),
        &[(CDS, &["dangling", "original-dst"], &[]), (LDS, &["l"], &[])],
    );
}

#[test]
fn s19_a_newer_snapshot_does_not_overtake_its_clusters() {
    let (mut world, mut rig) = delta();
    let first = rig.publish(world.service("b", "1").set(RDS, "t", "2"));
    expect(&first, &[(CDS, &["b"], &[])]);
    // Routes of the newer snapshot may name its clusters, which wait for an acknowledgement.
    expect(&rig.publish(world.service("c", "1").set(RDS, "t", "3")), &[]);
    expect(&rig.change(EDS, &["b"], &[]), &[(EDS, &["b"], &[])]);
    expect(&rig.ack(&first[0], &[]), &[(CDS, &["c"], &[])]);
    expect(&rig.change(EDS, &["c"], &[]), &[(EDS, &["c"], &[]), (RDS, &["t"], &[])]);
}

#[test]
fn s19_routes_are_not_starved_by_clusters_that_go_on_changing() {
    let (mut world, mut rig) = delta();
    let mut routes_at = None;
    let mut unanswered: Option<Response> = None;
    world.set(RDS, "t", "2");
    for round in 0..60 {
        let name = format!("new-{round}");
        let mut responses = rig.publish(world.service(&name, "1"));
        responses.extend(rig.wait(Duration::from_millis(100)));
        if let Some(last) = unanswered.take() {
            responses.extend(rig.ack(&last, &[]));
        }
        // The client asks for the endpoints of what came one round too late, always.
        for response in responses {
            if response.kind == Some(RDS) {
                routes_at.get_or_insert(round);
            }
            if response.kind == Some(CDS) {
                let names: Vec<_> = response.resources.iter().map(|r| r.name().clone()).collect();
                let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
                for response in rig.change(EDS, &names, &[]) {
                    if response.kind == Some(RDS) {
                        routes_at.get_or_insert(round);
                    }
                    if response.kind == Some(EDS) {
                        rig.ack(&response, &[]);
                    }
                }
                unanswered = Some(response);
            }
        }
    }
    assert!(routes_at.is_some_and(|round| round < 30), "{routes_at:?}");
}

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
    expect(&step, &[(LDS, &["l"], &[]), (VHDS, &[], &["t/v"])]);
    expect(&rig.ack(&step[0], &[]), &[(RDS, &[], &["t"])]);
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
