//! Random worlds in which everything that is named is there.

use std::collections::BTreeSet;

use super::super::Kind;
use super::world::World;
use crate::random::Random;

/// Worlds in which everything that is named is there.
#[derive(Default)]
pub struct Worlds {
    pub world: World,
    version: u64,
}

impl Worlds {
    /// Adds, changes and removes at random.
    pub fn change(&mut self, random: &mut Random) {
        self.version += 1;
        let version = self.version;
        let mut some = |n: u64, name: &str| -> BTreeSet<String> {
            (0..n).filter(|_| random.below(3) > 0).map(|i| format!("{name}{i}")).collect()
        };
        let services = some(6, "c");
        let tables = some(3, "t");
        let listeners = some(2, "l");
        let hosts: BTreeSet<_> =
            tables.iter().flat_map(|table| some(3, &format!("{table}/v"))).collect();
        let world = &mut self.world;
        for (kind, names) in [
            (Kind::Cluster, &services),
            (Kind::Endpoints, &services),
            (Kind::Listener, &listeners),
            (Kind::Routes, &tables),
            (Kind::VirtualHost, &hosts),
        ] {
            let entries = world.entries.entry(kind).or_default();
            entries.retain(|name, _| names.contains(name.as_ref()));
        }
        let pick = |random: &mut Random, from: &BTreeSet<String>| -> String {
            let some: Vec<_> = from.iter().filter(|_| random.below(2) == 0).cloned().collect();
            some.join(",")
        };
        for name in &services {
            if !world.has(Kind::Cluster, name) || random.below(3) == 0 {
                world.cluster(name, &format!("{version};"));
            }
            if !world.has(Kind::Endpoints, name) || random.below(3) == 0 {
                world.set(Kind::Endpoints, name, &format!("{version};"));
            }
        }
        // What names others is made anew, since what it named may be gone.
        for name in &tables {
            let body = format!("1;clusters={}", pick(random, &services));
            world.set(Kind::Routes, name, &body);
        }
        for name in &hosts {
            let body = format!("1;clusters={}", pick(random, &services));
            world.set(Kind::VirtualHost, name, &body);
        }
        for name in &listeners {
            let (routes, clusters) = (pick(random, &tables), pick(random, &services));
            world.set(Kind::Listener, name, &format!("1;routes={routes};clusters={clusters}"));
        }
    }

    pub fn tell(&self) -> String {
        let kinds = self.world.entries.iter();
        let told = kinds.map(|(kind, entries)| {
            let names =
                entries.keys().map(|name| format!("{name}:{}", self.world.body(*kind, name)));
            format!("{kind:?} {}", names.collect::<Vec<_>>().join(" "))
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// Changes everything, and each type.
    pub fn touch(&mut self) {
        self.world.service("new", "1;").set(Kind::Listener, "new", "1;");
        self.world.set(Kind::Routes, "new", "1;").set(Kind::VirtualHost, "new/v", "1;");
        for kind in Kind::ALL {
            let names: Vec<_> =
                self.world.entries.entry(kind).or_default().keys().cloned().collect();
            for name in names {
                let body = format!("{};touched", self.world.body(kind, &name));
                match kind {
                    Kind::Cluster => self.world.cluster(&name, &body),
                    _ => self.world.set(kind, &name, &body),
                };
            }
        }
    }
}
