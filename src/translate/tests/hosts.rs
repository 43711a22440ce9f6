//! Virtual hosts: their domains, and where each port in the authority leads.

use std::collections::BTreeSet;

use envoy_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::world::{
    HTTP, TCP, decoded, hosts, pod, port, projection, seen, service, settings, text, view,
};
use crate::model::{MeshService, Place, Reason};
use crate::translate::{CaptureMode, Translator};
use crate::xds::Kind;

/// Where Envoy sends a request to `authority` once it is at this virtual host.
fn leads(host: &VirtualHost, authority: &str) -> String {
    for route in &host.routes {
        let on = route.r#match.as_ref().unwrap();
        if on.path_specifier != Some(PathSpecifier::Prefix("/".to_owned())) {
            continue;
        }
        let fits = on.headers.iter().all(|header| {
            assert_eq!(header.name, ":authority");
            let Some(HeaderMatchSpecifier::StringMatch(string)) = &header.header_match_specifier
            else {
                panic!("{header:?}")
            };
            let found = match string.match_pattern.as_ref().unwrap() {
                MatchPattern::Suffix(suffix) => authority.ends_with(suffix),
                MatchPattern::Contains(part) => authority.contains(part),
                other => panic!("{other:?}"),
            };
            found != header.invert_match
        });
        if !fits {
            continue;
        }
        return match route.action.as_ref().unwrap() {
            Action::Route(to) => match to.cluster_specifier.as_ref().unwrap() {
                ClusterSpecifier::Cluster(cluster) => cluster.clone(),
                other => panic!("{other:?}"),
            },
            Action::DirectResponse(answer) => {
                let body = text(answer.body_format.as_ref().unwrap());
                format!("{} {body}", answer.status)
            }
            other => panic!("{other:?}"),
        };
    }
    "nowhere".to_owned()
}

fn host(mode: CaptureMode, service: MeshService) -> VirtualHost {
    let name = format!("cap_http.shop/{}.{}", service.key.name, service.key.namespace);
    hosts(&seen(mode, [service]), "pod/shop/web", "cap_http.shop").remove(&name).unwrap()
}

#[test]
fn each_port_in_the_authority_has_its_cluster() {
    const CART: &str = "http:cart.shop.aether.internal";
    let host_of = |ports| {
        host(CaptureMode::RedirectAll, service("shop/cart", &["10.96.0.1", "fd00::80"], ports))
    };
    let default_is_80 = host_of(&[(80, HTTP), (9090, TCP)]);
    let default_is_9090 = host_of(&[(9090, HTTP), (80, HTTP)]);
    let without_80 = host_of(&[(9090, HTTP), (8080, HTTP)]);
    let own_18081 = host_of(&[(18081, HTTP), (8080, HTTP)]);
    let at = |port: u16| format!("{CART}:{port}");
    let table = [
        (&default_is_80, "cart", CART.to_owned()),
        (&default_is_80, "cart:", CART.to_owned()),
        (&default_is_80, "cart:80", CART.to_owned()),
        (&default_is_80, "cart:18081", CART.to_owned()),
        (&default_is_80, "cart:9090", at(9090)),
        (&default_is_80, "[fd00::80]", CART.to_owned()),
        (&default_is_80, "[fd00::80]:", CART.to_owned()),
        (&default_is_80, "[fd00::80]:9090", at(9090)),
        (&default_is_9090, "cart", at(80)),
        (&default_is_9090, "cart:", at(80)),
        (&default_is_9090, "cart:9090", CART.to_owned()),
        (&default_is_9090, "cart:18081", CART.to_owned()),
        (&without_80, "cart.shop.svc.", CART.to_owned()),
        (&without_80, "[fd00::80]", CART.to_owned()),
        (&without_80, "cart:8080", at(8080)),
        (&own_18081, "cart:18081", CART.to_owned()),
        (&own_18081, "cart:8080", at(8080)),
    ];
    for (host, authority, expected) in table {
        assert_eq!(leads(host, authority), expected, "{authority}");
    }
    for unknown in ["cart:81", "cart:8", "cart:080", "cart:180", "cart:x", "[fd00::80]:81"] {
        let answer = leads(&default_is_80, unknown);
        let expected = "404 %REQ(:AUTHORITY)% names the service shop/cart, which has no such port: \
                        it has 80 and 9090";
        assert_eq!(answer, expected, "{unknown}");
    }
}

#[test]
fn unknown_ports_of_a_headless_service_pass_through_where_there_is_a_way() {
    let mut peers = service("shop/peers", &[], &[(80, HTTP)]);
    peers.headless = true;
    let all = host(CaptureMode::RedirectAll, peers.clone());
    assert_eq!(leads(&all, "peers.shop:6379"), "passthrough_original_dst");
    assert_eq!(leads(&all, "peers.shop:80"), "http:peers.shop.aether.internal");
    let domains: BTreeSet<_> = all.domains.iter().map(String::as_str).collect();
    let expected = BTreeSet::from([
        "peers",
        "peers.",
        "peers.shop",
        "peers.shop.",
        "peers.shop.svc",
        "peers.shop.svc.",
        "peers.shop.svc.cluster.local",
        "peers.shop.svc.cluster.local.",
    ]);
    assert_eq!(domains, expected);
    let scoped = host(CaptureMode::Scoped, peers);
    assert!(leads(&scoped, "peers.shop:6379").starts_with("404 "));
}

#[test]
fn the_catch_all_is_last_and_does_what_the_mode_says() {
    for (mode, expected) in [
        (CaptureMode::RedirectAll, "passthrough_original_dst"),
        (CaptureMode::Scoped, "404 %REQ(:AUTHORITY)% is no mesh service"),
    ] {
        let snapshot = seen(mode, [service("shop/zoo", &["10.96.0.1"], &[(80, HTTP)])]);
        let routes =
            decoded::<RouteConfiguration>(&view(&snapshot, "pod/shop/web", "sotw"), Kind::Routes);
        for (table, config) in &routes {
            assert!(config.ignore_port_in_host_matching && config.vhds.is_none(), "{table}");
            let last = config.virtual_hosts.last().unwrap();
            assert_eq!(last.name, format!("{table}/any"));
            assert_eq!(last.domains, ["*"]);
            assert_eq!(leads(last, "stranger:1"), expected);
            let connect = last.routes[0].r#match.as_ref().unwrap();
            assert!(matches!(connect.path_specifier, Some(PathSpecifier::ConnectMatcher(_))));
        }
    }
}

#[test]
fn a_bare_name_means_the_callers_own_namespace() {
    let projection = projection(
        ["shop/cart", "bank/cart", "bank/atm"].map(|key| {
            let mut service = service(key, &[], &[(80, HTTP)]);
            service.owns_short_name = key == "bank/cart";
            service.cluster_ips = vec!["10.96.0.1".parse().unwrap()];
            service
        }),
        [pod("shop/web", Place::default()), pod("bank/web", Place::default())],
    );
    let snapshot =
        Translator::new(settings(CaptureMode::RedirectAll)).translate(&projection).snapshot;
    let owner = |node: &str, table: &str, domain: &str| {
        let hosts = hosts(&snapshot, node, table);
        let mut owners = hosts.values().filter(|host| host.domains.iter().any(|d| d == domain));
        let owner = owners.next().map(|host| host.name.clone());
        assert!(owners.next().is_none());
        owner.map(|name| name.strip_prefix(&format!("{table}/")).unwrap().to_owned())
    };
    let table = [
        ("pod/shop/web", "cap_http.shop", "cart", Some("cart.shop")),
        ("pod/shop/web", "cap_http.shop", "cart.", Some("cart.shop")),
        ("pod/bank/web", "cap_http.bank", "cart", Some("cart.bank")),
        ("pod/shop/web", "cap_http.shop", "atm", None),
        ("pod/bank/web", "cap_http.bank", "atm", Some("atm.bank")),
        ("pod/shop/web", "cap_http", "cart", None),
        ("pod/shop/web", "cap_http", "cart.shop", Some("cart.shop")),
        ("pod/shop/web", "cap_http.shop", "cart.bank", Some("cart.bank")),
        ("pod/shop/web", "cap_http.shop", "cart.aether.internal", Some("cart.bank")),
        ("pod/shop/web", "cap_http.shop", "cart.shop.aether.internal.", Some("cart.shop")),
    ];
    for (node, table, domain, expected) in table {
        let found = owner(node, table, domain);
        assert_eq!(found.as_deref(), expected, "{table} {domain}");
    }
}

#[test]
fn delta_streams_get_the_same_virtual_hosts_one_by_one() {
    let services = ["shop/cart", "bank/atm"].map(|key| service(key, &[], &[(80, HTTP)]));
    let snapshot = seen(CaptureMode::RedirectAll, services);
    let delta = view(&snapshot, "pod/shop/web", "delta");
    let routes = decoded::<RouteConfiguration>(&delta, Kind::Routes);
    assert!(routes["cap_http.shop"].vhds.is_some());
    assert!(routes["cap_http.shop"].virtual_hosts.is_empty());
    assert!(routes["cap_http"].vhds.is_none() && routes["cap_http"].virtual_hosts.len() == 3);
    let single = decoded::<VirtualHost>(&delta, Kind::VirtualHost);
    assert_eq!(single, hosts(&snapshot, "pod/shop/web", "cap_http.shop"));
    for (name, host) in single {
        assert_eq!(host.name, name);
    }
}

#[test]
fn a_body_names_as_many_ports_as_fit() {
    let mut many = service("shop/many", &[], &[(1, HTTP)]);
    many.ports = (1..=1000).map(|number| port(number, HTTP)).collect();
    let answer = leads(&host(CaptureMode::RedirectAll, many), "many:5000");
    assert!(answer.ends_with("31, 32 and 968 more"), "{answer}");
    let mut few = service("shop/few", &[], &[(1, HTTP)]);
    few.ports = (1..=32).map(|number| port(number, HTTP)).collect();
    let answer = leads(&host(CaptureMode::RedirectAll, few), "few:5000");
    assert!(answer.ends_with("30, 31 and 32"), "{answer}");
}

#[test]
fn what_envoy_would_refuse_is_left_out_alone() {
    let good = service("shop/cart", &["10.96.0.1"], &[(80, HTTP)]);
    let mut bad = service("shop/bad", &["10.96.0.2"], &[(80, HTTP), (81, TCP)]);
    let wrongs: [fn(&mut MeshService); 6] = [
        |s| s.service = "Bad_Name".into(),
        |s| s.key.name = "a.b".into(),
        |s| s.ports.clear(),
        |s| s.ports[1].number = 80,
        |s| s.ports[1].number = 0,
        |s| s.default_port = 82,
    ];
    let pods = || [pod("shop/web", Place::default())];
    let mut translator = Translator::new(settings(CaptureMode::RedirectAll));
    let alone = translator.translate(&projection([good.clone()], pods()));
    assert!(alone.findings.is_empty());
    for (at, wrong) in wrongs.into_iter().enumerate() {
        let mut service = bad.clone();
        wrong(&mut service);
        let both = translator.translate(&projection([good.clone(), service], pods()));
        assert_eq!(both.findings.len(), 1, "{at}");
        assert!(both.findings.iter().all(|one| one.reason == Reason::NotServable));
        assert_eq!(
            super::world::everything(&both.snapshot),
            super::world::everything(&alone.snapshot),
            "{at}"
        );
    }
    // Two that claim one address: the first keeps it, the other loses it alone.
    bad.owned_ips = good.owned_ips.clone();
    let both = translator.translate(&projection([good, bad], pods()));
    let all = hosts(&both.snapshot, "pod/shop/web", "cap_http");
    assert!(all["cap_http/bad.shop"].domains.contains(&"10.96.0.1".to_owned()));
    assert!(!all["cap_http/cart.shop"].domains.contains(&"10.96.0.1".to_owned()));
    assert!(all["cap_http/cart.shop"].domains.contains(&"cart.shop".to_owned()));
    let message = &both.findings.iter().next().unwrap().message;
    assert!(message.contains("10.96.0.1") && message.contains("shop/bad"), "{message}");
}
