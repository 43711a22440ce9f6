//! Pods that list their upstreams: what they see, what they share, and what leaves them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use envoy_types::pb::envoy::config::listener::v3::Listener;

use super::world::{
    HTTP, TCP, decoded, hosts, listing, pod, projection, seen, service, settings, view,
};
use crate::model::{MeshService, Place, Projection, ServiceKey};
use crate::translate::{CaptureMode, DnsFilter, Settings, Translator};
use crate::xds::{Kind, Snapshot};

const MODES: [CaptureMode; 2] = [CaptureMode::RedirectAll, CaptureMode::Scoped];
const SCOPED: &str = "pod/shop/scoped";
const WHOLE: &str = "pod/shop/web";

fn services() -> Vec<MeshService> {
    vec![
        service("shop/cart", &["10.96.0.1"], &[(80, HTTP), (9000, TCP)]),
        service("shop/api", &["10.96.0.2"], &[(80, HTTP)]),
        service("pay/ledger", &["10.96.0.3"], &[(3306, TCP)]),
        service("pay/till", &["10.96.0.4"], &[(80, HTTP)]),
    ]
}

fn scoped(mode: CaptureMode, listed: &[&str]) -> Arc<Snapshot> {
    let pods = [pod("shop/web", Place::default()), listing("shop/scoped", listed)];
    let settings = Settings { dns: Some(DnsFilter::default()), ..settings(mode) };
    Translator::new(settings).translate(&projection(services(), pods)).snapshot
}

fn names(snapshot: &Arc<Snapshot>, kind: Kind) -> Vec<String> {
    let names = view(snapshot, SCOPED, "delta").names(kind);
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_list_takes_in_what_it_names_and_what_every_pod_needs() {
    let snapshot = scoped(CaptureMode::RedirectAll, &["shop/cart", "pay/ledger", "pay/ghost"]);
    let clusters = [
        "http:cart.shop.aether.internal",
        "http:cart.shop.aether.internal:9000",
        "passthrough_original_dst",
        "tcp:cart.shop.aether.internal:18081",
        "tcp:cart.shop.aether.internal:80",
        "tcp:cart.shop.aether.internal:9000",
        "tcp:ledger.pay.aether.internal:18081",
        "tcp:ledger.pay.aether.internal:3306",
    ];
    assert_eq!(names(&snapshot, Kind::Cluster), clusters);
    let assignments = ["pay/ledger:3306", "shop/cart:80", "shop/cart:9000"];
    assert_eq!(names(&snapshot, Kind::Endpoints), assignments);
    assert_eq!(names(&snapshot, Kind::Routes), ["cap_http", "cap_http.shop.scoped"]);
    let inside = ["cap_http.shop.scoped/any", "cap_http.shop.scoped/cart.shop"];
    assert_eq!(names(&snapshot, Kind::VirtualHost), inside);
    // Also when they are asked for by name.
    let view = view(&snapshot, SCOPED, "delta");
    for (kind, name) in [
        (Kind::Cluster, "http:api.shop.aether.internal"),
        (Kind::Endpoints, "shop/api:80"),
        (Kind::Endpoints, "pay/till:80"),
        (Kind::Routes, "cap_http.shop"),
        (Kind::VirtualHost, "cap_http.shop.scoped/api.shop"),
        (Kind::VirtualHost, "cap_http.shop/cart.shop"),
    ] {
        assert!(view.get(kind, name).is_none() && view.version(kind, name).is_none(), "{name}");
    }
    let listeners: BTreeMap<String, Listener> = decoded(&view, Kind::Listener);
    let chains = listeners["capture_shop_scoped"].filter_chains.iter();
    let chains: BTreeSet<_> = chains.map(|chain| chain.name.as_str()).collect();
    let expected = [
        "cap_self",
        "cap_http",
        "cap_http_shop/cart_10.96.0.1",
        "cap_tcp_shop/cart_10.96.0.1_raw",
        "cap_tcp_shop/cart_10.96.0.1",
        "cap_tcp_pay/ledger_10.96.0.3",
    ];
    assert_eq!(chains, BTreeSet::from(expected));
    let answered = super::dns::table(&listeners["dns_shop_scoped"]);
    let answered: Vec<_> = answered.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "cart.aether.internal",
        "cart.shop.aether.internal",
        "ledger.aether.internal",
        "ledger.pay.aether.internal",
    ];
    assert_eq!(answered, expected);
}

#[test]
fn the_bare_name_is_that_of_the_pods_own_namespace_in_a_scope_too() {
    let snapshot = scoped(CaptureMode::RedirectAll, &["shop/cart", "pay/till"]);
    let hosts = hosts(&snapshot, SCOPED, "cap_http.shop.scoped");
    let bears = |host: &str, name: &str| hosts[host].domains.iter().any(|domain| domain == name);
    assert!(bears("cap_http.shop.scoped/cart.shop", "cart"));
    assert!(!bears("cap_http.shop.scoped/till.pay", "till"));
    assert!(bears("cap_http.shop.scoped/till.pay", "till.aether.internal"));
}

#[test]
fn an_empty_list_leaves_what_every_pod_needs() {
    for mode in MODES {
        let snapshot = scoped(mode, &[]);
        let passthrough: &[&str] = match mode {
            CaptureMode::RedirectAll => &["passthrough_original_dst"],
            CaptureMode::Scoped => &[],
        };
        assert_eq!(names(&snapshot, Kind::Cluster), passthrough);
        assert!(names(&snapshot, Kind::Endpoints).is_empty());
        let hosts = hosts(&snapshot, SCOPED, "cap_http.shop.scoped");
        assert_eq!(hosts.keys().collect::<Vec<_>>(), ["cap_http.shop.scoped/any"]);
        let listeners: BTreeMap<String, Listener> =
            decoded(&view(&snapshot, SCOPED, "delta"), Kind::Listener);
        assert!(super::dns::table(&listeners["dns_shop_scoped"]).is_empty());
        let chains = &listeners["capture_shop_scoped"].filter_chains;
        assert!(chains.iter().any(|chain| chain.name == "cap_http"), "{chains:?}");
    }
}

#[test]
fn a_scope_holds_the_very_bytes_of_the_whole_mesh() {
    let snapshot = scoped(CaptureMode::RedirectAll, &["shop/cart", "pay/ledger"]);
    let (scoped, whole) = (view(&snapshot, SCOPED, "delta"), view(&snapshot, WHOLE, "delta"));
    let mut compared = 0;
    for kind in [Kind::Cluster, Kind::Endpoints] {
        for resource in scoped.all(kind) {
            let other = whole.get(kind, resource.name()).unwrap();
            let shared = resource.body().chunks().iter().zip(other.body().chunks());
            assert!(shared.clone().all(|(a, b)| a.as_ptr() == b.as_ptr()), "{}", resource.name());
            compared += shared.count();
        }
    }
    assert!(compared > 10, "{compared}");
    let host = scoped.get(Kind::VirtualHost, "cap_http.shop.scoped/cart.shop").unwrap();
    let other = whole.get(Kind::VirtualHost, "cap_http.shop/cart.shop").unwrap();
    let (host, other) = (host.body().chunks(), other.body().chunks());
    assert!(host.len() > 2 && host.len() == other.len());
    assert!(host.iter().zip(other).skip(1).all(|(a, b)| a.as_ptr() == b.as_ptr()));
}

fn without(projection: &Projection, key: &str) -> Projection {
    let mut next = projection.clone();
    next.services.remove(&key.parse::<ServiceKey>().unwrap());
    next
}

#[test]
fn what_lies_outside_of_a_scope_touches_nothing_of_it() {
    for mode in MODES {
        let pods = [pod("shop/web", Place::default()), listing("shop/scoped", &["shop/cart"])];
        let all = projection(services(), pods);
        let settings = Settings { dns: Some(DnsFilter::default()), ..settings(mode) };
        let mut translator = Translator::new(settings);
        let before = translator.translate(&without(&all, "shop/cart")).snapshot;
        let of = |snapshot: &Arc<Snapshot>| {
            let spec = snapshot.nodes[SCOPED].clone();
            let stems = spec.own.iter().map(|own| snapshot.stems[&own.stem].version);
            (snapshot.groups[&spec.group].clone(), stems.collect::<Vec<_>>())
        };
        for key in ["pay/ledger", "shop/api", "pay/till"] {
            let after = translator.translate(&without(&without(&all, "shop/cart"), key)).snapshot;
            assert!(!Arc::ptr_eq(&after, &before), "{key} is seen by others");
            let (group, stems) = of(&after);
            assert!(Arc::ptr_eq(&group, &of(&before).0) && stems == of(&before).1, "{key}");
        }
        // What is listed comes when it is there.
        let after = translator.translate(&all).snapshot;
        assert!(!Arc::ptr_eq(&of(&after).0, &of(&before).0) && of(&after).1 != of(&before).1);
        assert!(view(&after, SCOPED, "delta").get(Kind::Endpoints, "shop/cart:80").is_some());
    }
}

#[test]
fn another_list_is_another_group_and_the_order_of_a_list_is_none() {
    let group =
        |listed: &[&str]| scoped(CaptureMode::RedirectAll, listed).nodes[SCOPED].group.clone();
    let lists: [&[&str]; 4] = [&[], &["shop/cart"], &["shop/api"], &["shop/api", "shop/cart"]];
    let groups: BTreeSet<_> = lists.iter().map(|listed| group(listed)).collect();
    assert_eq!(groups.len(), lists.len());
    assert_eq!(group(&["shop/cart", "shop/api"]), group(&["shop/api", "shop/cart"]));
    let whole = seen(CaptureMode::RedirectAll, services());
    assert!(!groups.contains(&whole.nodes[WHOLE].group));
}

/// A thousand pods, of which a hundred have the same list each, and a thousand services.
fn large(lists: bool) -> Projection {
    let services = (0..1000).map(|n| {
        let ip = format!("10.96.{}.{}", n / 250, n % 250 + 1);
        let kind = if n % 5 == 0 { TCP } else { HTTP };
        service(&format!("ns{}/s{n}", n % 20), &[&ip], &[(80, kind)])
    });
    let pods = (0..1000).map(|n| {
        let key = format!("ns{}/p{n}", n % 10);
        let listed: Vec<_> =
            (0..100).map(|s| (n % 10) * 100 + s).map(|s| format!("ns{}/s{s}", s % 20)).collect();
        let listed: Vec<_> = listed.iter().map(String::as_str).collect();
        if lists { listing(&key, &listed) } else { pod(&key, Place::default()) }
    });
    projection(services.collect::<Vec<_>>(), pods.collect::<Vec<_>>())
}

/// The bytes that the tails of listeners take, those that are shared counted once.
fn stored(snapshot: &Snapshot) -> usize {
    let chunks = snapshot.stems.values().flat_map(|stem| stem.rope.chunks());
    let chunks: BTreeMap<_, _> = chunks.map(|chunk| (chunk.as_ptr(), chunk.len())).collect();
    chunks.values().sum()
}

#[test]
fn a_thousand_pods_with_ten_lists_cost_little_more_than_without() {
    let settings = Settings { dns: Some(DnsFilter::default()), ..Settings::default() };
    let mut figures = Vec::new();
    for lists in [false, true] {
        let all = large(lists);
        let mut translator = Translator::new(settings.clone());
        let start = Instant::now();
        let snapshot = translator.translate(&all).snapshot;
        let whole = start.elapsed();
        let mut next = all.clone();
        let service = next.services.get_mut(&ServiceKey::new("ns1", "s1")).unwrap();
        Arc::make_mut(service).ports[0].endpoints.clear();
        let start = Instant::now();
        translator.translate(&next);
        let change = start.elapsed();
        eprintln!(
            "lists {lists}: {whole:?} for all, {change:?} for an endpoint, {} bytes of listeners, {} groups",
            stored(&snapshot),
            snapshot.groups.len()
        );
        figures.push(stored(&snapshot));
        if lists {
            let dns: BTreeSet<_> =
                snapshot.stems.keys().filter(|k| k.starts_with("dns/")).collect();
            assert_eq!(dns.len(), 10, "one table of names a list");
        }
    }
    // The name of its routes is all that a pod has of its own.
    assert!(figures[1] < figures[0] * 2 + 1000 * 512, "{figures:?}");
}
