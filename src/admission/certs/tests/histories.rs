//! Random histories: replicas that come, go, are cut off and lead in turn; writes that are lost or
//! late; a Secret that somebody deletes, breaks, freezes, or brings back from an older day.

use proptest::prelude::*;

use super::world::{Fate, World};
use super::*;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// Time passes.
    Pass(u64),
    /// Another leads, or nobody.
    Leads(Option<usize>),
    /// A replica looks, and what it writes has this fate.
    Looks(usize, Fate),
    /// A replica is started anew, after whatever it was doing.
    Restarts(usize),
    /// A replica is cut off, or back.
    CutOff(usize, bool),
    Deleted,
    Garbage,
    Frozen,
    /// From this backup.
    BroughtBack(usize),
}

const REPLICAS: usize = 3;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Stored),
        1 => Just(Fate::Lost),
        1 => (1_u64..40).prop_map(Fate::Late),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        12 => (1_u64..60).prop_map(Happens::Pass),
        2 => proptest::option::of(0..REPLICAS).prop_map(Happens::Leads),
        8 => (0..REPLICAS, fate()).prop_map(|(replica, fate)| Happens::Looks(replica, fate)),
        1 => (0..REPLICAS).prop_map(Happens::Restarts),
        1 => (0..REPLICAS, any::<bool>()).prop_map(|(replica, off)| Happens::CutOff(replica, off)),
    ]
}

fn other_hands() -> impl Strategy<Value = Happens> {
    prop_oneof![
        Just(Happens::Deleted),
        Just(Happens::Garbage),
        Just(Happens::Frozen),
        (0_usize..20).prop_map(Happens::BroughtBack),
    ]
}

fn act(world: &mut World, happens: Happens) {
    match happens {
        Happens::Pass(seconds) => {
            world.pass(seconds);
            // Nobody who can is idle for longer than a minute.
            for index in 0..REPLICAS {
                let replica = &world.replicas[index];
                if world.seconds - replica.read >= 60 {
                    world.round(index, Fate::Stored);
                }
            }
        }
        Happens::Leads(who) => world.leader = who,
        Happens::Looks(index, fate) => drop(world.round(index, fate)),
        Happens::Restarts(index) => {
            let replica = &mut world.replicas[index];
            let (skew, cut_off, read) = (replica.skew, replica.cut_off, replica.read);
            *replica = super::world::Replica { skew, cut_off, read, ..Default::default() };
        }
        Happens::CutOff(index, cut_off) => world.replicas[index].cut_off = cut_off,
        Happens::Deleted => world.secret = Secret::Absent,
        Happens::Garbage => world.secret_is(Err(Fault::Empty)),
        Happens::Frozen => {
            if let Secret::Found { immutable, .. } = &mut world.secret {
                *immutable = true;
            }
        }
        Happens::BroughtBack(which) => {
            let backups = world.backups.len().max(1);
            if let Some(backup) = world.backups.get(which % backups).cloned() {
                world.secret_is(Ok(backup));
            }
        }
    }
}

/// Lets everybody work undisturbed, and sees that all is well then and nobody writes any more.
fn settles(world: &mut World, told: &dyn Fn() -> String) {
    world.leader = Some(1);
    for replica in &mut world.replicas {
        (replica.cut_off, replica.skew) = (false, 0);
    }
    for _ in 0..60 {
        for index in 0..REPLICAS {
            world.round(index, Fate::Stored);
            world.check(told);
        }
        world.pass(10);
    }
    let mut writes = 0;
    for index in [1, 0, 2, 1] {
        writes += usize::from(world.round(index, Fate::Stored).write.is_some());
    }
    // Only what a calendar asks for: an authority begun, promoted or forgotten.
    assert!(writes <= 1, "{writes} writes\n{}", told());
    let Secret::Found { contents: Ok(known), .. } = &world.secret else {
        panic!("no Secret\n{}", told())
    };
    assert!(known.signing.is_some(), "nothing signs\n{}", told());
    for (index, replica) in world.replicas.iter().enumerate() {
        assert!(replica.ready && replica.trusted, "{index} is not ready\n{}", told());
    }
}

fn history(skews: [i64; REPLICAS], all: &[Happens]) {
    let mut world = World::new(REPLICAS);
    for (replica, skew) in world.replicas.iter_mut().zip(skews) {
        replica.skew = skew;
    }
    let told = || format!("{skews:?} {all:#?}");
    for happens in all {
        act(&mut world, *happens);
        world.check(&told);
    }
    settles(&mut world, &told);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    #[ignore = "does not hold yet: a replica that is cut off, or a time without any leader, can outlast an authority"]
    fn what_is_trusted_stays_trusted(
        skews in prop::array::uniform3(-50_i64..50),
        all in prop::collection::vec(happens(), 50..300),
    ) {
        history(skews, &all);
    }

    /// The same with other hands at the Secret, which may cost an authority but no trust.
    #[test]
    #[ignore = "does not hold yet: a Secret that cannot be read for long can outlast a certificate"]
    fn what_is_trusted_stays_trusted_whatever_becomes_of_the_secret(
        skews in prop::array::uniform3(-50_i64..50),
        all in prop::collection::vec(prop_oneof![12 => happens(), 1 => other_hands()], 50..300),
    ) {
        history(skews, &all);
    }
}

/// A long quiet life: authorities change as often as they should, and no more.
#[test]
fn authorities_change_by_the_calendar() {
    let mut world = World::new(REPLICAS);
    let hours = 12;
    for _ in 0..hours * 3600 / 30 {
        for index in 0..REPLICAS {
            world.round(index, Fate::Stored);
            world.check(&String::new);
        }
        world.pass(30);
    }
    // Each signs for two thirds of its hour, and the overlap.
    let expected = hours * 3600 / (2400 + 60);
    assert!(world.promoted.abs_diff(expected) <= 1, "{} of {expected}", world.promoted);
    // The old ones are gone from the bundle.
    assert!(world.bundles.last().unwrap().1.len() <= 3);
    assert!(world.replicas.iter().all(|replica| replica.ready));
}
