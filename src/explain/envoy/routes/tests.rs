#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

fn host(name: &str, domains: &[&str]) -> VirtualHost {
    VirtualHost {
        name: name.into(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        ..Default::default()
    }
}

#[test]
fn domains_match_without_case_and_port_and_the_narrower_first() {
    let table = RouteConfiguration {
        ignore_port_in_host_matching: true,
        virtual_hosts: vec![
            host("any", &["*"]),
            host("suffix", &["*.shop"]),
            host("longer", &["*.b.shop"]),
            host("prefix", &["web.*"]),
            host("web", &["web", "Web.Shop", "web.shop.", "10.96.0.3", "[fd00::3]"]),
        ],
        ..Default::default()
    };
    for (authority, expected) in [
        ("web", "web"),
        ("WEB.shop:8080", "web"),
        ("web.shop.", "web"),
        ("web.shop.:80", "web"),
        ("web:", "web"),
        ("10.96.0.3:80", "web"),
        ("[fd00::3]", "web"),
        ("[FD00::3]:80", "web"),
        ("a.shop", "suffix"),
        ("a.b.shop", "longer"),
        // The star stands for one character at least.
        (".shop", "any"),
        ("web.pay", "prefix"),
        ("webby", "any"),
        ("user@web", "any"),
    ] {
        let found = virtual_host(&table, authority).unwrap().0;
        assert_eq!(found.name, expected, "{authority}");
    }
    let with_ports = RouteConfiguration { ignore_port_in_host_matching: false, ..table };
    assert_eq!(virtual_host(&with_ports, "web:80").unwrap().0.name, "any");
    assert!(virtual_host(&RouteConfiguration::default(), "web").is_none());
}
