//! The worlds are worth loading: all that they are to hold is in them.

use std::collections::BTreeSet;

use aether::cli::options::Objects;
use aether::index;
use aether::model::{MeshNames, Reason};
use aether::translate::{SERVER_FIRST_PORTS, Settings};
use it::world::World;

use super::generate::Generated;

#[test]
fn the_worlds_hold_every_shape_and_every_mistake() {
    let (mut reasons, mut sizes, mut ports) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    let (mut dual, mut v6, mut headless, mut mixed, mut silent) = (0, 0, 0, 0, 0);
    let world = World::new().unwrap();
    let folder = Objects::Folder(world.path().to_owned());
    for seed in 0..60 {
        Generated::of(seed).put(&world).unwrap();
        let names = MeshNames::new("aether.internal", "cluster.local").unwrap();
        let settings = index::Settings::new(names, [], SERVER_FIRST_PORTS.to_vec());
        let once = aether::run::once(&folder, Settings::default(), settings).unwrap();
        reasons.extend(once.findings.iter().map(|finding| finding.reason));
        let services = &once.projection.services;
        sizes.push(services.len());
        for service in services.values() {
            ports.extend(service.ports.iter().map(|port| port.number));
            let families = |v6| service.owned_ips.iter().any(|ip| ip.is_ipv6() == v6);
            dual += usize::from(families(true) && families(false));
            v6 += usize::from(families(true) && !families(false));
            headless += usize::from(service.headless);
            mixed += usize::from(service.has_http() && service.has_tcp());
            silent += usize::from(service.ports.iter().all(|port| port.endpoints.is_empty()));
        }
        // The two callers are in each.
        assert!(once.projection.pods.len() >= 2 && once.snapshot.nodes.len() >= 2, "{seed}");
    }
    let expected = BTreeSet::from([
        Reason::UnreadableObject,
        Reason::DuplicateObject,
        Reason::InvalidValue,
        Reason::ConflictingKey,
        Reason::LostShortName,
        Reason::ConflictingAddress,
        Reason::NotCaptured,
        Reason::NotSupported,
        Reason::Suspicious,
    ]);
    assert!(reasons.is_superset(&expected), "{reasons:?}");
    assert!(sizes.contains(&0) && sizes.iter().any(|size| *size > 200), "{sizes:?}");
    assert!(ports.contains(&1) && ports.contains(&65535) && ports.len() > 300, "{}", ports.len());
    let counts = [dual, v6, headless, mixed, silent];
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

#[test]
fn a_seed_gives_the_same_world_each_time() {
    for seed in [0, 7, u64::MAX] {
        assert_eq!(Generated::of(seed), Generated::of(seed));
    }
    assert_ne!(Generated::of(0), Generated::of(1));
}
