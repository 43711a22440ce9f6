//! Names, listings and digests against plain sets.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::digest::{Digest, Member};
use super::super::names::Names;
use super::super::{
    Entry, Group, Kind, Layer, Lens, NodeSpec, Resource, Snapshot, Stem, Table, View, Words,
};
use super::world::{EDS, NODE, World};
use crate::random::Random;

/// The view of the node over a world's next snapshot.
fn view(world: &mut World) -> View {
    View::new(&world.snapshot(), NODE, &"delta".into()).unwrap()
}

fn check(names: &Names, set: &BTreeSet<Arc<str>>, view: &View) {
    assert_eq!(names.all(EDS, view), *set);
    assert_eq!(names.is_empty(EDS, view), set.is_empty());
    assert_eq!(names.digest(EDS, view), Digest::of_names(set));
    let shown = view.names(EDS);
    assert!(!names.whole() || shown.is_subset(set));
    for name in shown.union(set) {
        assert_eq!(names.contains(name, EDS, view), set.contains(name), "{name}");
    }
    let held = |name: &Arc<str>| Some(Member::held(name, view.version(EDS, name)?));
    assert_eq!(names.held(EDS, view), set.iter().filter_map(held).collect());
    let missing = shown.difference(set).cloned().collect::<BTreeSet<_>>();
    if let Some(digest) = names.completed(EDS, view) {
        assert_eq!(digest, Digest::of_names(set.union(&shown)));
        assert_eq!(names.clone().complete(), missing);
    }
    let absent: BTreeSet<_> = set.difference(&shown).cloned().collect();
    assert!(absent.is_subset(names.odd()));
}

#[test]
fn names_are_the_set_that_they_stand_for_whatever_the_view_shows() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut world = World::default();
        let any = |random: &mut Random| -> Arc<str> { format!("e{}", random.below(12)).into() };
        for _ in 0..random.below(10) {
            world.set(EDS, &any(&mut random), "1");
        }
        let mut now = view(&mut world);
        let mut set: BTreeSet<Arc<str>> = (0..random.below(12)).map(|_| any(&mut random)).collect();
        if random.below(2) == 0 {
            set = now.names(EDS);
        }
        let words: Words = set.iter().rev().map(AsRef::<str>::as_ref).chain(["*"]).collect();
        let mut names = Names::read(&words, EDS, &now);
        check(&names, &set, &now);
        for step in 0..30 {
            let name = any(&mut random);
            match random.below(4) {
                0 => {
                    names.insert(name.clone(), EDS, &now);
                    set.insert(name);
                }
                1 => assert_eq!(names.remove(&name, EDS, &now), set.remove(&name)),
                _ => {
                    for _ in 0..random.below(4) {
                        let name = any(&mut random);
                        match random.below(2) {
                            0 => world.remove(EDS, &name),
                            _ => world.set(EDS, &name, &step.to_string()),
                        };
                    }
                    let next = view(&mut world);
                    let changed = next.changed_since(EDS, now.generation());
                    let known = changed.filter(|_| random.below(3) > 0);
                    names.follow(EDS, &now, &next, known.as_ref());
                    now = next;
                }
            }
            check(&names, &set, &now);
        }
    }
}

#[test]
fn a_client_that_names_all_there_is_costs_no_name() {
    let mut world = World::default();
    for i in 0..100 {
        world.set(EDS, &format!("e{i}"), "1");
    }
    let now = view(&mut world);
    let all = |skip: usize| -> Words { (skip..100).map(|i| format!("e{i}")).collect() };
    assert!(Names::read(&all(0), EDS, &now).whole());
    let most = Names::read(&all(10), EDS, &now);
    assert!(!most.whole() && most.odd().is_empty());
    // It is the other way round for a client that names a few.
    assert_eq!(Names::read(&all(60), EDS, &now).odd().len(), 40);
}

/// A snapshot of two nodes in two zones, and one more with a listener of its own.
fn zones() -> Arc<Snapshot> {
    let resource = |body: u8| Entry::Plain(Resource::new(EDS, "e", vec![body], None));
    let forms = [("zone/a".into(), resource(1)), ("zone/b".into(), resource(2))].into();
    let by_zone = Entry::ByLens { forms: Arc::new(forms), other: Box::new(resource(3)) };
    let endpoints = Table::new(EDS, 1, [("e".into(), by_zone)].into());
    let cluster = Entry::Plain(Resource::new(Kind::Cluster, "c", vec![1], None));
    let clusters = Table::new(Kind::Cluster, 1, [("c".into(), cluster)].into());
    let stem = Entry::Stem(Stem::new(vec![1]));
    let hosts = Table::new(Kind::VirtualHost, 1, [("v".into(), stem)].into());
    let group = |prefix: &str| {
        Arc::new(Group::new(
            [
                (Kind::Cluster, vec![Layer::plain(clusters.clone())]),
                (EDS, vec![Layer::plain(endpoints.clone())]),
                (Kind::VirtualHost, vec![Layer::prefixed(hosts.clone(), prefix)]),
            ]
            .into(),
        ))
    };
    let node = |group: &str, lenses: &[&str]| {
        let lenses: Vec<Lens> = lenses.iter().map(|lens| (*lens).into()).collect();
        Arc::new(NodeSpec {
            group: group.into(),
            lenses,
            own: Vec::new(),
            identity: None,
            retry: false,
        })
    };
    let nodes = vec![
        (Arc::from("1"), node("x", &["node/1", "zone/a"])),
        (Arc::from("2"), node("x", &["node/2", "zone/a"])),
        (Arc::from("3"), node("y", &["node/3", "zone/b"])),
    ];
    Arc::new(Snapshot {
        generation: 1,
        nodes: nodes.into(),
        groups: [("x".into(), group("x/")), ("y".into(), group("y/"))].into(),
        ..Snapshot::default()
    })
}

#[test]
fn s29_streams_share_a_batch_where_they_see_the_same() {
    let snapshot = zones();
    let batch = |id: &str, kind| View::new(&snapshot, id, &"delta".into()).unwrap().batch(kind);
    let same = |a: &str, b: &str, kind| {
        let (a, b) = (batch(a, kind), batch(b, kind));
        std::ptr::eq(a.as_ptr(), b.as_ptr())
    };
    // Every node has a name; only lenses that any resource has a form for tell them apart.
    assert!(same("1", "2", Kind::Cluster) && same("1", "3", Kind::Cluster));
    assert!(same("1", "2", EDS) && !same("1", "3", EDS));
    assert!(same("1", "2", Kind::VirtualHost) && !same("1", "3", Kind::VirtualHost));
    let body = |id: &str| batch(id, EDS).iter().map(|r| r.body().to_bytes()).collect::<Vec<_>>();
    assert_eq!((body("1"), body("3")), (vec![vec![1].into()], vec![vec![2].into()]));
    let name = |id: &str| batch(id, Kind::VirtualHost)[0].name().to_string();
    assert_eq!((name("1").as_str(), name("3").as_str()), ("x/v", "y/v"));
    let held =
        |id: &str, kind| View::new(&snapshot, id, &"delta".into()).unwrap().held_digest(kind);
    assert_eq!(held("1", EDS), held("2", EDS));
    assert_ne!(held("1", EDS), held("3", EDS));
    assert_ne!(held("1", Kind::VirtualHost), held("3", Kind::VirtualHost));
}
