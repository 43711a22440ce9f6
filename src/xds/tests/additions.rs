//! Order of what comes: statement 19.

use std::time::Duration;

use super::super::{Kind, Response};
use super::rig::{Rig, expect};
use super::warm::{delta, settle, sotw};
use super::world::{CDS, EDS, LDS, RDS, VHDS};

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
