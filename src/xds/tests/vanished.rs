//! A cluster that is gone before its endpoints were asked for. An Envoy answers the response that
//! brought it only when it is warm, so nothing may wait for that answer.

use std::time::Duration;

use super::super::Protocol;
use super::rig::{Rig, said};
use super::world::{CDS, EDS, World};

/// A client that has cluster `a`, was sent `b`, and does not answer: `b` is not warm.
fn warming(protocol: Protocol) -> (World, Rig) {
    let mut world = World::default();
    world.service("a", "1");
    let mut rig = Rig::new(protocol);
    rig.publish(&mut world);
    for (kind, names) in [(CDS, &[][..]), (EDS, &["a"][..])] {
        let response = rig.ask(kind, names).remove(0);
        rig.ack(&response, names);
    }
    world.service("b", "1");
    assert_eq!(rig.publish(&mut world)[0].kind, Some(CDS));
    world.remove(CDS, "b").remove(EDS, "b").service("c", "1");
    assert!(rig.publish(&mut world).is_empty(), "the answer is waited for, for a while");
    (world, rig)
}

/// What the client is told of clusters within a time.
fn clusters_within(rig: &mut Rig, time: Duration) -> (Vec<String>, Vec<String>) {
    let (mut has, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        for response in rig.wait(time / 10) {
            let (kind, names, removed) = said(&response);
            if kind == Some(CDS) {
                has.extend(names);
                gone.extend(removed);
            }
        }
    }
    (has, gone)
}

#[test]
fn s19_clusters_wait_for_no_answer_that_needs_endpoints() {
    let (_, mut rig) = warming(Protocol::Delta);
    let (has, gone) = clusters_within(&mut rig, Duration::from_millis(500));
    assert_eq!((has, gone), (vec!["c".to_owned()], vec!["b".to_owned()]));

    let (_, mut rig) = warming(Protocol::Sotw);
    let (has, _) = clusters_within(&mut rig, Duration::from_millis(500));
    assert_eq!(has, ["a", "c"], "the whole state, without the vanished one");
}

/// Warm at last, an Envoy answers the newest of the responses that came meanwhile, and no other.
#[test]
fn s19_an_answer_to_the_last_response_answers_those_before() {
    let (mut world, mut rig) = warming(Protocol::Sotw);
    let mut told = Vec::new();
    for _ in 0..10 {
        told.extend(rig.wait(Duration::from_millis(50)));
    }
    let last = told.iter().rfind(|response| response.kind == Some(CDS)).unwrap();
    rig.ask(EDS, &["a", "c"]);
    rig.ack(last, &[]);
    world.service("d", "1");
    let now = rig.publish(&mut world);
    assert!(now.iter().any(|response| said(response).1.contains(&"d".to_owned())), "{now:?}");
}
