//! Random interleavings of snapshots, subscriptions, answers, time and reconnects against a client
//! that checks what it gets: in the end it has what the view has, and on the way nothing dangles.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::{Kind, Protocol};
use super::model::Model;
use super::worlds::Worlds;
use crate::random::Random;

/// How many runs of each sort; more by hand.
fn runs() -> u64 {
    std::env::var("AETHER_XDS_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// What a run may do.
struct Rules {
    /// Refuse responses, want odd names, let time pass.
    chaos: bool,
    /// Lose the connection.
    reconnect: bool,
}

fn run(seed: u64, protocol: Protocol, rules: &Rules) {
    let mut random = Random::new(seed);
    let mut worlds = Worlds::default();
    let strict = !(rules.chaos || rules.reconnect && protocol == Protocol::Sotw);
    let mut model = Model::new(protocol, strict);
    model.warm = !rules.chaos;
    if random.below(2) == 0 {
        worlds.change(&mut random);
        model.publish(&mut worlds);
    }
    model.connect();
    for _ in 0..200 {
        match random.below(10) {
            0 => {
                worlds.change(&mut random);
                model.publish(&mut worlds);
            }
            1..=4 => {
                let refuse = rules.chaos && random.below(6) == 0;
                model.receive(refuse);
            }
            5..=8 => model.deliver(),
            _ if rules.reconnect && random.below(6) == 0 => model.reconnect(),
            _ if rules.chaos => match random.below(3) {
                0 => model.wait(Duration::from_millis(random.below(3000))),
                1 => model.toggle(&mut random),
                _ => {}
            },
            _ => model.wait(Duration::from_millis(1)),
        }
    }
    // Everything changes once more, and nothing is refused from now on.
    worlds.touch();
    model.publish(&mut worlds);
    // Time passes only as the session says that it needs it.
    model.settle();
    while model.pass() {
        model.settle();
    }
    model.converged(&worlds, seed);
}

fn all(protocol: Protocol, rules: &Rules) {
    let one = std::env::var("AETHER_XDS_SEED").ok().and_then(|n| n.parse().ok());
    for seed in one.map_or(0..runs(), |seed| seed..seed + 1) {
        let run = std::panic::AssertUnwindSafe(|| run(seed, protocol, rules));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}, {protocol:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn s19_s21_delta_never_dangles_and_converges() {
    all(Protocol::Delta, &Rules { chaos: false, reconnect: false });
}

#[test]
fn s19_s21_sotw_never_dangles_and_converges() {
    all(Protocol::Sotw, &Rules { chaos: false, reconnect: false });
}

#[test]
fn s14_s19_delta_never_dangles_through_reconnects() {
    all(Protocol::Delta, &Rules { chaos: false, reconnect: true });
}

#[test]
fn s19_s20_sotw_names_nothing_cold_through_reconnects() {
    all(Protocol::Sotw, &Rules { chaos: false, reconnect: true });
}

#[test]
fn s06_s24_delta_converges_through_anything() {
    all(Protocol::Delta, &Rules { chaos: true, reconnect: true });
}

#[test]
fn s06_s24_sotw_converges_through_anything() {
    all(Protocol::Sotw, &Rules { chaos: true, reconnect: true });
}

#[test]
fn the_checks_of_the_model_can_fail() {
    let mut worlds = Worlds::default();
    worlds.world.service("a", "1;").set(Kind::Listener, "l", "1;clusters=a,b");
    let mut model = Model::new(Protocol::Delta, true);
    model.publish(&mut worlds);
    model.connect();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.settle()));
    assert!(panicked.is_err(), "a listener names a cluster that is not there");
    let names: BTreeSet<_> = worlds.world.snapshot().nodes.keys().cloned().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn the_check_for_warm_clusters_can_fail() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut worlds = Worlds::default();
        worlds.world.service("a", "1;").set(Kind::Listener, "l", "1;clusters=a");
        let mut model = Model::new(protocol, false);
        model.warm = true;
        model.publish(&mut worlds);
        model.connect();
        let lossy = std::panic::AssertUnwindSafe(|| {
            for _ in 0..10 {
                model.down.retain(|response| response.kind != Some(Kind::Endpoints));
                model.receive(false);
                model.deliver();
            }
        });
        assert!(std::panic::catch_unwind(lossy).is_err(), "{protocol:?}: the endpoints are lost");
    }
}
