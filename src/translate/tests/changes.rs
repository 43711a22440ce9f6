//! What a change touches, and what it costs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::world::{
    HTTP, TCP, endpoint, everything, place, pod, port, projection, service, settings,
};
use crate::model::{Health, MeshService, Place, Projection, ServiceKey};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};

fn mesh(services: usize) -> Projection {
    let services = (0..services).map(|n| {
        let ip = format!("10.96.{}.{}", n / 250, n % 250 + 1);
        let kind = if n % 5 == 0 { TCP } else { HTTP };
        let mut service = service(&format!("ns{}/s{n}", n % 20), &[&ip], &[(80, kind)]);
        service.ports[0].endpoints = (1..=5)
            .map(|e| endpoint(&format!("10.{e}.{}.{}", n / 250, n % 250), Health::Ready))
            .collect();
        service
    });
    let pods = (0..40).map(|n| {
        pod(
            &format!("ns{}/p{n}", n % 20),
            place(&format!("node{n}"), "eu", &format!("eu{}", n % 3)),
        )
    });
    projection(services.collect::<Vec<_>>(), pods)
}

/// Changes one service of a projection, as the index does: the others stay the same allocations.
fn with(projection: &Projection, key: &str, change: impl FnOnce(&mut MeshService)) -> Projection {
    let mut next = projection.clone();
    let service = next.services.get_mut(&key.parse::<ServiceKey>().unwrap()).unwrap();
    change(Arc::make_mut(service));
    next
}

/// The names that differ between two projections, of every node.
fn touched(before: &Projection, after: &Projection) -> BTreeSet<String> {
    let mut translator = Translator::new(settings(CaptureMode::RedirectAll));
    let before = everything(&translator.translate(before).snapshot);
    let after = everything(&translator.translate(after).snapshot);
    let keys = before.keys().chain(after.keys());
    let differ = keys.filter(|key| before.get(*key) != after.get(*key));
    // The tables of state-of-the-world streams hold all virtual hosts.
    let single =
        differ.filter(|(_, _, _, name)| !name.starts_with("cap_http") || name.contains('/'));
    single.map(|(_, _, _, name)| name.clone()).collect()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_endpoint_touches_its_assignment_alone() {
    let before = mesh(50);
    let after = with(&before, "ns1/s1", |s| {
        s.ports[0].endpoints.truncate(4);
    });
    assert_eq!(touched(&before, &after), names(&["ns1/s1:80"]));
}

#[test]
fn an_http_service_comes_without_touching_a_listener() {
    let after = mesh(50);
    let mut before = after.clone();
    before.services.remove(&ServiceKey::new("ns1", "s1"));
    let mut expected = names(&["http:s1.ns1.aether.internal", "ns1/s1:80"]);
    expected.extend((0..20).map(|n| format!("cap_http.ns{n}/s1.ns1")));
    assert_eq!(touched(&before, &after), expected);
}

#[test]
fn a_tcp_port_comes_and_goes_without_touching_a_listener() {
    let before = mesh(50);
    let after = with(&before, "ns0/s0", |s| s.ports.push(port(81, TCP)));
    assert_eq!(touched(&before, &after), names(&["ns0/s0:81", "tcp:s0.ns0.aether.internal:81"]));
}

#[test]
fn an_equal_projection_gives_the_very_same_snapshot() {
    let settings = Settings { dns: Some(DnsFilter::default()), ..Settings::default() };
    let mut translator = Translator::new(settings);
    let first = translator.translate(&mesh(50)).snapshot;
    let again = translator.translate(&mesh(50)).snapshot;
    assert!(Arc::ptr_eq(&first, &again));
    let changed = with(&mesh(50), "ns1/s1", |s| s.ports[0].endpoints.clear());
    let next = translator.translate(&changed).snapshot;
    assert_eq!(next.generation, first.generation + 1);
    assert!(next.nodes.ptr_eq(&first.nodes));
}

#[test]
fn a_mesh_without_services_or_pods_is_one_too() {
    let mut translator = Translator::new(settings(CaptureMode::RedirectAll));
    let empty = translator.translate(&Projection::default());
    assert!(empty.snapshot.nodes.is_empty() && empty.snapshot.generation == 1);
    let pods = projection([], [pod("shop/web", Place::default())]);
    assert_eq!(everything(&translator.translate(&pods).snapshot).len(), 2 + 2 * 2 + 2 + 2);
    let gone = translator.translate(&Projection::default()).snapshot;
    assert!(gone.nodes.is_empty() && gone.groups.is_empty() && gone.stems.is_empty());
}

#[test]
fn one_that_begins_anew_goes_on_with_its_generations_and_with_nothing_else() {
    let mut translator = Translator::new(settings(CaptureMode::RedirectAll));
    let first = translator.translate(&mesh(50)).snapshot;
    let mut anew = translator.anew();
    let again = anew.translate(&mesh(50)).snapshot;
    assert_eq!(again.generation, first.generation + 1);
    assert_eq!(everything(&again), everything(&first));
    let gone = translator.anew().translate(&Projection::default()).snapshot;
    assert!(gone.generation == first.generation + 1 && gone.nodes.is_empty());
}

/// Not a benchmark: it would notice work that grows with the square of the mesh.
#[test]
fn a_change_costs_what_changed() {
    let before = mesh(5000);
    let mut translator = Translator::new(settings(CaptureMode::RedirectAll));
    let start = Instant::now();
    translator.translate(&before);
    let whole = start.elapsed();
    let mut least = whole;
    for round in 0..5u32 {
        let after = with(&before, "ns1/s1", |s| s.ports[0].endpoints[0].weight = round + 2);
        let start = Instant::now();
        translator.translate(&after);
        least = least.min(start.elapsed());
    }
    eprintln!("all of 5,000 services: {whole:?}, one of them: {least:?}");
    assert!(least * 10 < whole, "{least:?} of {whole:?}");
}
