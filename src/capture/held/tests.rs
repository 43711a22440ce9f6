#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::IpAddr;

use super::*;
use crate::model::{Endpoint, Health, HttpVersion, MeshPort, Protocol, TrafficScope};

const REFUSED: Refused<'_> = Refused { node: "pod/shop/web", words: "no", at: "then" };

fn service(name: &str, port: u16, endpoints: &[u8]) -> Arc<MeshService> {
    let endpoint = |last: &u8| Endpoint {
        address: IpAddr::from([10, 0, 0, *last]),
        port: 8080,
        health: Health::Ready,
        weight: 1,
        locality: None,
        node: None,
    };
    let endpoints = endpoints.iter().map(endpoint).collect();
    Arc::new(MeshService {
        key: ServiceKey::new("shop", name),
        service: name.into(),
        cluster_ips: vec![],
        owned_ips: vec![],
        headless: false,
        owns_short_name: true,
        ports: vec![MeshPort {
            number: port,
            protocol: Protocol::Http(HttpVersion::Http1),
            endpoints,
        }],
        default_port: port,
        scope: TrafficScope::Cluster,
    })
}

fn services(all: &[&Arc<MeshService>]) -> Services {
    all.iter().map(|service| (service.key.clone(), (*service).clone())).collect()
}

fn accepted(all: &[&Arc<MeshService>]) -> Arc<Projection> {
    Arc::new(Projection { services: services(all), ..Projection::default() })
}

/// What is served when the objects say this.
fn served(held: &mut Held, objects: &[&Arc<MeshService>]) -> Services {
    let mut all = services(objects);
    held.apply(&mut all);
    all
}

#[test]
fn what_the_refusal_names_is_held_and_the_rest_goes_on() {
    let (old, new) = (service("cart", 80, &[1]), service("cart", 81, &[1]));
    let (other, innocent) = (service("web", 80, &[2]), service("web", 90, &[2]));
    let mut held = Held::default();
    held.released(&accepted(&[&old, &other]));
    let tried = services(&[&new, &innocent]);
    let keys = held.refused(&tried, REFUSED, |service| &*service.service == "cart");
    assert_eq!(keys, std::slice::from_ref(&new.key));
    assert_eq!(served(&mut held, &[&new, &innocent]), services(&[&old, &innocent]));
    let finding = held.findings().next().unwrap().to_string();
    for word in ["Service shop/cart", "pod/shop/web", "\"no\"", "last accepted form", "then"] {
        assert!(finding.contains(word), "{finding}");
    }
}

#[test]
fn where_it_names_none_all_that_changed_is_held() {
    let (old, new) = (service("cart", 80, &[1]), service("cart", 81, &[1]));
    let (same, added) = (service("web", 80, &[2]), service("new", 80, &[3]));
    let mut held = Held::default();
    held.released(&accepted(&[&old, &same]));
    let keys = held.refused(&services(&[&new, &same, &added]), REFUSED, |_| false);
    assert_eq!(keys, [new.key.clone(), added.key.clone()]);
    assert_eq!(served(&mut held, &[&new, &same, &added]), services(&[&old, &same]));
    let text: Vec<String> = held.findings().map(ToString::to_string).collect();
    assert!(text.iter().any(|text| text.contains("nothing of it is served")), "{text:?}");
    // Where nothing differs, no Service is to blame.
    let mut held = Held::default();
    held.released(&accepted(&[&same]));
    assert!(held.refused(&services(&[&same]), REFUSED, |_| false).is_empty());
}

#[test]
fn a_removal_that_was_refused_is_held_too() {
    let old = service("cart", 80, &[1]);
    let mut held = Held::default();
    held.released(&accepted(&[&old]));
    held.refused(&Services::new(), REFUSED, |_| false);
    assert_eq!(served(&mut held, &[]), services(&[&old]));
    // It comes back in any form: that is a change.
    let new = service("cart", 81, &[1]);
    assert_eq!(served(&mut held, &[&new]), services(&[&new]));
}

#[test]
fn endpoints_move_and_any_other_change_ends_the_hold() {
    let (old, new) = (service("cart", 80, &[1]), service("cart", 80, &[1]));
    let new = Arc::new(MeshService { owns_short_name: false, ..MeshService::clone(&new) });
    let mut held = Held::default();
    held.released(&accepted(&[&old]));
    held.refused(&services(&[&new]), REFUSED, |_| true);
    let mut moved = MeshService::clone(&new);
    moved.ports[0].endpoints = service("cart", 80, &[9]).ports[0].endpoints.clone();
    let moved = Arc::new(moved);
    let all = served(&mut held, &[&moved]);
    let form = &all[&old.key];
    assert!(form.owns_short_name && form.ports[0].endpoints == moved.ports[0].endpoints);
    assert_eq!(held.findings().count(), 1);
    let mended = service("cart", 80, &[1, 2]);
    assert_eq!(served(&mut held, &[&mended]), services(&[&mended]));
    assert_eq!(held.findings().count(), 0);
}
