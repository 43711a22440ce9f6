//! Statements 1 to 5, and who waits.

use super::super::{Fault, Heard, Kind, Protocol, Request, Standing, Versions, Wants, Words};
use super::rig::{Rig, expect, one};
use super::world::{CDS, LDS, NODE, World};

fn world() -> World {
    let mut world = World::default();
    world.set(CDS, "a", "1").set(LDS, "l", "1");
    world
}

#[test]
fn s01_each_type_has_its_own_nonce_version_and_subscription() {
    for protocol in [Protocol::Sotw, Protocol::Delta] {
        let mut rig = Rig::new(protocol);
        rig.publish(&mut world());
        let clusters = one(rig.ask(CDS, &[]));
        let listeners = one(rig.ask(LDS, &["l"]));
        assert_ne!(clusters.nonce, listeners.nonce);
        // The answer of one type does nothing to the other.
        expect(&rig.ack(&clusters, &[]), &[]);
        expect(&rig.ack(&listeners, if protocol == Protocol::Sotw { &["l"] } else { &[] }), &[]);
    }
}

#[test]
fn s01_a_per_type_service_implies_its_type_and_serves_no_other() {
    let mut rig = Rig::of(Protocol::Sotw, Some(CDS));
    rig.publish(&mut world());
    let implied = Request { wants: Wants::All(Words::default()), ..Request::default() };
    expect(&rig.say(implied).unwrap(), &[(CDS, &["a"], &[])]);
    expect(&rig.ask(LDS, &[]), &[]);
    assert_eq!(rig.heard, Some(Heard::Unknown));
}

#[test]
fn s02_an_empty_type_on_the_aggregated_service_is_refused() {
    let mut rig = Rig::new(Protocol::Delta);
    rig.publish(&mut world());
    assert_eq!(rig.say(Request::default()).unwrap_err(), Fault::NoType);
}

#[test]
fn s02_an_unknown_type_is_silence_in_sotw_and_removed_in_delta() {
    let url = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
    let mut rig = Rig::sotw(&mut world());
    let names: Words = ["x", "*"].into_iter().collect();
    let request =
        Request { type_url: url.into(), wants: Wants::All(names.clone()), ..Request::default() };
    expect(&rig.say(request).unwrap(), &[]);
    assert_eq!(rig.heard, Some(Heard::Unknown));
    expect(&rig.ask(CDS, &[]), &[(CDS, &["a"], &[])]);

    let mut rig = Rig::new(Protocol::Delta);
    let wants = Wants::Change {
        subscribe: names,
        unsubscribe: Words::default(),
        initial: Versions::default(),
    };
    let request = Request { type_url: url.into(), wants, ..Request::default() };
    // Even this waits for the first snapshot.
    expect(&rig.say(request).unwrap(), &[]);
    let response = one(rig.publish(&mut world()));
    assert_eq!((response.type_url.as_ref(), response.removed.len()), (url, 1));
    assert!(response.nonce != 0 && response.resources.is_empty());
    // Its acknowledgement is answered with silence.
    let wants = Wants::Change {
        subscribe: Words::default(),
        unsubscribe: Words::default(),
        initial: Versions::default(),
    };
    let nonce = response.nonce.to_string();
    let ack = Request { type_url: url.into(), nonce, wants, ..Request::default() };
    expect(&rig.say(ack).unwrap(), &[]);
    expect(&rig.ask(CDS, &[]), &[(CDS, &["a"], &[])]);
}

#[test]
fn s02_virtual_hosts_are_unknown_in_sotw() {
    let mut world = world();
    world.set(Kind::VirtualHost, "t/v", "1");
    let mut rig = Rig::sotw(&mut world);
    expect(&rig.ask(Kind::VirtualHost, &[]), &[]);
    assert_eq!(rig.heard, Some(Heard::Unknown));
}

#[test]
fn s03_the_node_comes_first_and_stays() {
    let ask = |node: Option<&str>| Request {
        node: node.map(Into::into),
        type_url: CDS.type_url().into(),
        ..Request::default()
    };
    let admit = || Rig::new(Protocol::Sotw).session;
    let now = std::time::Instant::now();
    assert_eq!(admit().request(ask(None), now), Err(Fault::NoNode));
    for bad in ["", "cart"] {
        let fault = admit().request(ask(Some(bad)), now).unwrap_err();
        assert!(fault.to_string().contains("pod/<ns>/<name>"), "{fault}");
    }
    let mut session = admit();
    assert_eq!(session.request(ask(Some(NODE)), now), Ok(Heard::Fine));
    assert_eq!(session.request(ask(None), now), Ok(Heard::Fine));
    assert_eq!(session.request(ask(Some(NODE)), now), Ok(Heard::Fine));
    let other = session.request(ask(Some("pod/shop/other")), now);
    assert!(matches!(other, Err(Fault::OtherNode { .. })));
}

#[test]
fn s04_nonces_are_unique_and_mean_nothing_on_the_next_stream() {
    for protocol in [Protocol::Sotw, Protocol::Delta] {
        let mut world = world();
        let mut rig = Rig::new(protocol);
        rig.publish(&mut world);
        let mut seen = std::collections::BTreeSet::new();
        let first = one(rig.ask(CDS, &[]));
        seen.insert(first.nonce);
        rig.ack(&first, &[]);
        for round in 0..5 {
            let push = one(rig.publish(world.set(CDS, "a", &format!("round {round}"))));
            assert!(push.nonce != 0 && seen.insert(push.nonce));
            rig.ack(&push, &[]);
        }
        // The first request for a type is initial whatever nonce it carries, ours or another's.
        for nonce in ["1", "3", "from somewhere else"] {
            let mut rig = Rig::new(protocol);
            rig.publish(&mut world);
            expect(&rig.with(nonce, CDS, &[], &[]), &[(CDS, &["a"], &[])]);
            expect(&rig.with(nonce, LDS, &[], &[]), &[(LDS, &["l"], &[])]);
        }
    }
}

#[test]
fn s11_before_the_first_snapshot_and_for_an_unknown_node_there_is_silence() {
    for protocol in [Protocol::Sotw, Protocol::Delta] {
        let mut rig = Rig::new(protocol);
        expect(&rig.ask(CDS, &[]), &[]);
        let mut world = world();
        world.without_node = true;
        expect(&rig.publish(&mut world), &[]);
        expect(&rig.ask(LDS, &["l", "m"]), &[]);
        assert!(!rig.session.served());
        world.without_node = false;
        let responses = rig.publish(&mut world);
        let gone: &[&str] = if protocol == Protocol::Delta { &["m"] } else { &[] };
        expect(&responses, &[(CDS, &["a"], &[]), (LDS, &["l"], gone)]);
        // A node that vanishes keeps what it has.
        world.without_node = true;
        world.set(CDS, "b", "1");
        expect(&rig.publish(&mut world), &[]);
        expect(&rig.ack(&responses[0], &[]), &[]);
        world.without_node = false;
        assert_eq!(one(rig.publish(&mut world)).kind, Some(CDS));
    }
}

#[test]
fn a_node_that_goes_is_forgotten_and_one_that_was_never_there_waits() {
    let mut world = World { without_node: true, ..World::default() };
    world.service("a", "1");
    let mut rig = Rig::new(Protocol::Delta);
    assert_eq!(rig.session.standing(), None);
    rig.publish(&mut world);
    assert_eq!(rig.session.standing(), None, "nobody has said who it is");
    assert!(rig.ask(CDS, &[]).is_empty());
    assert_eq!(rig.session.standing(), Some(Standing::Waiting));
    for (without_node, standing) in
        [(false, Standing::Served), (true, Standing::Forgotten), (false, Standing::Served)]
    {
        world.without_node = without_node;
        rig.publish(&mut world);
        assert_eq!(rig.session.standing(), Some(standing));
    }
}
