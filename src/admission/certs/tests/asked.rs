//! An authority that somebody wants changed.

use super::plans::{Process, a, bundle, signing, step};
use super::world::World;
use super::*;

fn asking(contents: Authorities, value: &str) -> Secret {
    let Secret::Found { uid, version, immutable, contents, .. } = found(1, contents) else {
        panic!("none");
    };
    Secret::Found { uid, version, immutable, asked: Some(value.into()), contents }
}

/// What is to be written to the Secret.
fn written(plan: &Plan) -> Authorities {
    match &plan.write {
        Some(Write::Create(contents) | Write::Replace(_, contents)) => contents.authorities.clone(),
        write => panic!("{write:?}"),
    }
}

fn with(rotation: Rotation) -> Authorities {
    Authorities { rotation, ..signing(1) }
}

#[test]
fn each_new_value_asks_once() {
    let rotation = |begun: Option<&str>, done: Option<&str>| Rotation {
        begun: begun.map(Into::into),
        done: done.map(Into::into),
    };
    let table = [
        (rotation(None, None), "a", true),
        (rotation(None, Some("a")), "a", false),
        (rotation(None, Some("a")), "b", true),
        (rotation(Some("a"), None), "a", false),
        (rotation(Some("b"), Some("a")), "b", false),
        (rotation(Some("b"), Some("a")), "c", true),
    ];
    for (rotation, value, asks) in table {
        let mut process = Process::new(true).serves(1, 0);
        let secret = asking(with(rotation.clone()), value);
        let plan = process.sees(&secret, &trusting(5, &[a(1)]), 0);
        let expected = asks.then_some((Step::Rotate, Some(Place::Next)));
        assert_eq!(step(&plan), expected, "{rotation:?} {value}");
        if asks {
            let begun = written(&plan).rotation;
            assert_eq!((begun.begun.as_deref(), begun.done), (Some(value), rotation.done));
        }
    }
    // Whoever may not write leaves it to the leader.
    let secret = asking(signing(1), "a");
    assert_eq!(Process::new(false).sees(&secret, &trusting(5, &[a(1)]), 0).write, None);
}

#[test]
fn the_next_one_is_given_up_too_and_what_is_given_up_goes_soon() {
    let retired = Retired { authority: a(3), until: BEGIN + 900 };
    let next = Some(pair(2, BEGIN, &settings()));
    let contents = Authorities { next, retired: vec![retired], ..signing(1) };
    let live = trusting(5, &[a(1), a(2), a(3)]);
    let mut process = Process::new(true).serves(1, 0);
    let begun = written(&process.sees(&asking(contents, "a"), &live, 0));
    // Nothing goes before there is another.
    let given_up = [(a(3), BEGIN + 900), (a(2), BEGIN + 900)];
    let found: Vec<_> = begun.retired.iter().map(|r| (r.authority.clone(), r.until)).collect();
    assert_eq!((found, begun.next.clone()), (given_up.to_vec(), None));
    // The one that signs goes on until the new one may; nothing is trusted for longer than three
    // overlaps then.
    assert_eq!(begun.signing, signing(1).signing);
    let next = Some(pair(4, BEGIN, &settings()));
    let contents = Authorities { next, ..begun };
    let live = trusting(6, &[a(1), a(4), a(3), a(2)]);
    let secret = asking(contents, "a");
    assert_eq!(process.sees(&secret, &live, 1).write, None);
    assert_eq!(process.sees(&secret, &live, 60).write, None);
    let promoted = process.sees(&secret, &live, 61);
    assert_eq!(step(&promoted), Some((Step::Promote, None)));
    let promoted = written(&promoted);
    let soon: Vec<_> = promoted.retired.iter().map(|r| (r.authority.clone(), r.until)).collect();
    assert_eq!(soon, [3, 2, 1].map(|number| (a(number), BEGIN + 61 + 180)));
    assert_eq!(promoted.rotation, Rotation { begun: None, done: Some("a".into()) });
    let (secret, live) = (asking(promoted, "a"), trusting(7, &[a(4), a(3), a(2), a(1)]));
    let mut process = process.serves(4, 61);
    assert_eq!(process.sees(&secret, &live, 62).write, None);
    assert_eq!(process.sees(&secret, &live, 240).write, None);
    assert_eq!(bundle(&process.sees(&secret, &live, 241)), Some(ders(&[a(4)])));
}

#[test]
fn a_replica_that_saw_the_new_one_late_moves_before_the_old_one_goes() {
    let retired = |until| Authorities {
        retired: vec![Retired { authority: a(1), until: BEGIN + until }],
        ..signing(2)
    };
    let live = trusting(5, &[a(2), a(1)]);
    for (until, moves) in [(900, false), (241, false), (240, true), (60, true)] {
        let plan = Process::new(false).serves(1, 0).sees(&found(1, retired(until)), &live, 0);
        assert_eq!(matches!(plan.serve, serve::Serve::Sign(_)), moves, "{until}");
        // Not to what somebody brought back, while the one that was asked for is awaited.
        let rotation = Rotation { begun: Some("a".into()), done: None };
        let waits = Authorities { rotation, ..retired(until) };
        let plan = Process::new(false).serves(1, 0).sees(&found(1, waits), &live, 0);
        assert!(matches!(plan.serve, serve::Serve::Keep(_)), "{until}");
    }
}

#[test]
fn what_is_asked_of_a_secret_that_goes_is_not_lost() {
    let live = trusting(5, &[a(1)]);
    let frozen = |contents, asked: Option<&str>| Secret::Found {
        uid: "u".into(),
        version: "3".into(),
        immutable: true,
        asked: asked.map(Into::into),
        contents,
    };
    // Nobody may change it: it is deleted, and with it the annotation.
    let mut process = Process::new(true).serves(1, 0);
    let plan = process.sees(&frozen(Ok(signing(1)), Some("a")), &live, 0);
    assert!(matches!(plan.write, Some(Write::Delete { .. })), "{plan:?}");
    let plan = process.sees(&Secret::Absent, &live, 1);
    assert_eq!(step(&plan), Some((Step::Rotate, Some(Place::Next))));
    assert_eq!(written(&plan).rotation.begun.as_deref(), Some("a"));
    // Where there is nothing older, there is nothing to change.
    let garbage = frozen(Err(Fault::Empty), Some("a"));
    let mut process = Process::new(true);
    process.sees(&garbage, &trusting(5, &[]), 0);
    let plan = process.sees(&Secret::Absent, &trusting(5, &[]), 1);
    assert_eq!(step(&plan), Some((Step::Begin, Some(Place::Signing))));
    assert_eq!(written(&plan).rotation.done.as_deref(), Some("a"));
    // Without a memory, what is trusted is given up.
    let mut process = Process::new(true);
    process.sees(&garbage, &live, 0);
    let plan = process.sees(&Secret::Absent, &live, 1);
    assert_eq!(step(&plan), Some((Step::Rotate, Some(Place::Next))));
    assert_eq!(written(&plan).retired[0].until, BEGIN + 1 + 900);
}

/// Three replicas and a request: nobody loses trust, and nothing of before is left after some
/// minutes.
#[test]
fn nothing_of_before_is_left_and_no_trust_is_lost() {
    for at in [0, 100, 399, 401, 2_350, 2_405, 2_450, 2_470, 2_600, 3_000] {
        let mut world = World::new(3);
        world.pass(100 + at, &String::new);
        let before = ders(&world.authorities);
        world.ask();
        // One overlap to be seen, three to be left, and a minute each until somebody looks.
        world.pass(60 + 60 + 180 + 120, &String::new);
        let live = &world.bundles.last().unwrap().1;
        assert!(live.is_disjoint(&before) && !live.is_empty(), "{at}");
        let replicas = &world.replicas;
        assert!(replicas.iter().all(|replica| replica.ready && replica.trusted), "{at}");
    }
}
