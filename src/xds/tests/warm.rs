//! A stream as an Envoy has it when it is warm.

use std::time::Duration;

use super::super::{Kind, Protocol, Response};
use super::rig::{Rig, expect};
use super::world::{LDS, RDS, VHDS, World};

/// A stream as an Envoy has it when it is warm: everything subscribed and acknowledged.
pub fn warm(rig: &mut Rig) {
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

pub fn settle(rig: &mut Rig, responses: &[Response]) {
    for response in responses {
        let names: &[&str] = match (rig.protocol, response.kind.unwrap()) {
            (Protocol::Sotw, Kind::Endpoints) => &["a"],
            (Protocol::Sotw, Kind::Routes) => &["t"],
            _ => &[],
        };
        expect(&rig.ack(response, names), &[]);
    }
}

pub fn world() -> World {
    let mut world = World::default();
    world.service("a", "1").set(LDS, "l", "1").set(RDS, "t", "1");
    world
}

pub fn delta() -> (World, Rig) {
    let mut world = world();
    world.set(VHDS, "t/v", "1");
    let mut rig = Rig::delta(&mut world);
    warm(&mut rig);
    (world, rig)
}

pub fn sotw() -> (World, Rig) {
    let mut world = world();
    let mut rig = Rig::sotw(&mut world);
    warm(&mut rig);
    (world, rig)
}
