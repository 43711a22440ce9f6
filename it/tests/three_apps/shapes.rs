//! What each shape becomes, in what `render` prints.

use std::collections::BTreeSet;

use it::loaded::Loaded;
use serde_json::Value;

use super::{CALLER, manifests};

fn rendered(options: &[&str]) -> Loaded {
    Loaded::rendered(&manifests(), CALLER, options).unwrap()
}

fn listener<'a>(loaded: &'a Loaded, kind: &str) -> &'a Value {
    let name = format!("{kind}_{}", CALLER.strip_prefix("pod/").unwrap().replace('/', "_"));
    loaded.get("listeners", &name).unwrap_or_else(|| panic!("no {name}"))
}

/// The clusters of a service of `edge`, without the rest of its name: `http:`, `tcp::80`.
fn clusters(loaded: &Loaded, service: &str) -> BTreeSet<String> {
    let host = format!("{service}.edge.aether.internal");
    let names =
        loaded.names("clusters").into_iter().filter(|name| name.contains(&format!(":{host}")));
    names.map(|name| name.replace(&host, "")).collect()
}

/// The addresses and names of the chains of a service of `edge`, in their order.
fn chains(loaded: &Loaded, service: &str) -> BTreeSet<String> {
    let of = format!("_edge/{service}_");
    let chains = listener(loaded, "capture")["filter_chains"].as_array().unwrap();
    let names = chains.iter().map(|chain| chain["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.contains(&of)).collect()
}

/// The domains of a service of `edge` that have no trailing dot; an error unless each stands with one too.
fn domains(loaded: &Loaded, service: &str) -> Option<BTreeSet<String>> {
    let hosts = loaded.get("routes", "cap_http.edge").unwrap()["virtual_hosts"].as_array().unwrap();
    let host = hosts.iter().find(|host| host["name"] == format!("cap_http.edge/{service}.edge"))?;
    let all = host["domains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|domain| domain.as_str().unwrap().to_owned());
    let all: BTreeSet<String> = all.collect();
    let (dotted, plain): (BTreeSet<_>, BTreeSet<_>) =
        all.into_iter().partition(|domain| domain.ends_with('.'));
    let is_address = |domain: &String| domain.parse::<std::net::IpAddr>().is_ok();
    let expected =
        plain.iter().filter(|domain| !is_address(domain)).map(|domain| format!("{domain}."));
    assert_eq!(dotted, expected.collect());
    Some(plain)
}

/// The endpoints of an assignment: `priority address:port`.
fn endpoints(loaded: &Loaded, assignment: &str) -> BTreeSet<String> {
    let of = loaded.get("endpoints", assignment).unwrap_or_else(|| panic!("no {assignment}"));
    let of = of["endpoints"].as_array().unwrap().iter();
    of.map(|one| {
        format!("{} {}:{}", one["priority"], one["address"].as_str().unwrap(), one["port"])
    })
    .collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// All spellings of a Service of `edge` from within, and further ones.
fn spellings(service: &str, more: &[&str]) -> BTreeSet<String> {
    let mut all = set(more);
    all.extend(
        ["", ".edge", ".edge.svc", ".edge.svc.cluster.local"]
            .map(|rest| format!("{service}{rest}")),
    );
    all
}

#[test]
fn each_shape_comes_out_as_it_should_in_redirect_all_mode() {
    let loaded = rendered(&["--dns-filter"]);
    // One service with HTTP/1.1, HTTP/2 and TCP ports.
    let all = [
        "cap_http_edge/mixed_10.96.21.206",
        "cap_tcp_edge/mixed_10.96.21.206",
        "cap_tcp_edge/mixed_10.96.21.206_raw",
    ];
    assert_eq!(chains(&loaded, "mixed"), set(&all));
    let all =
        ["http:", "http::5222", "http::9090", "tcp::18081", "tcp::5222", "tcp::80", "tcp::9090"];
    assert_eq!(clusters(&loaded, "mixed"), set(&all));
    let names = ["10.96.21.206", "mixed.aether.internal", "mixed.edge.aether.internal"];
    assert_eq!(domains(&loaded, "mixed"), Some(spellings("mixed", &names)));
    let by_zone = [
        "0 10.244.0.7:9090",
        "0 10.244.3.4:9090",
        "1 10.244.1.9:9090",
        "1 10.244.4.4:9090",
        "1 10.244.5.1:9090",
    ];
    assert_eq!(endpoints(&loaded, "edge/mixed:9090"), set(&by_zone));

    // Headless: a virtual host without a mesh name, no chain.
    assert_eq!(chains(&loaded, "headless"), set(&[]));
    assert_eq!(clusters(&loaded, "headless"), set(&["http:"]));
    assert_eq!(domains(&loaded, "headless"), Some(spellings("headless", &[])));

    // Slices written by hand, TCP: what is not ready is left out.
    assert_eq!(chains(&loaded, "manual"), set(&["cap_tcp_edge/manual_10.96.22.5"]));
    assert_eq!(clusters(&loaded, "manual"), set(&["tcp::18081", "tcp::5432"]));
    assert_eq!(domains(&loaded, "manual"), None);
    assert_eq!(endpoints(&loaded, "edge/manual:5432"), set(&["0 203.0.113.7:5432"]));

    // Selectorless, from the registry: where its pods say that they serve.
    assert_eq!(clusters(&loaded, "generated"), set(&["http:"]));
    let by_zone = ["0 10.244.0.8:9443", "1 10.244.1.10:9443", "1 10.244.5.2:9443"];
    assert_eq!(endpoints(&loaded, "edge/generated:18081"), set(&by_zone));

    // Renamed: its own name in Kubernetes' spellings, its mesh name in the mesh's; the short name is another's.
    let names = ["10.96.200.91", "reviews.edge.aether.internal"];
    assert_eq!(domains(&loaded, "reviews"), Some(spellings("renamed", &names)));
    assert_eq!(
        (clusters(&loaded, "reviews"), chains(&loaded, "reviews")),
        (set(&["http:"]), set(&[]))
    );

    // UDP and TCP: the latter alone.
    assert_eq!(chains(&loaded, "udp"), set(&["cap_tcp_edge/udp_10.96.110.102"]));
    assert_eq!(clusters(&loaded, "udp"), set(&["tcp::18081", "tcp::53"]));
    assert_eq!(domains(&loaded, "udp"), None);
}

#[test]
fn nothing_of_a_loser_and_of_what_is_not_captured_is_served() {
    for options in [&["--dns-filter"][..], &["--dns-filter", "--capture-mode", "scoped"]] {
        let loaded = rendered(options);
        let all = ["listeners", "routes", "clusters", "endpoints"].map(|kind| {
            let of = loaded
                .names(kind)
                .into_iter()
                .map(|name| format!("{name} {}", loaded.get(kind, name).unwrap()));
            of.collect::<String>()
        });
        let all = all.concat();
        assert!(all.contains("10.96.21.206") && all.contains("mixed.edge"));
        for absent in [
            "twin",
            "10.96.185.204",
            "external.edge",
            "db.example.com",
            "unlabelled",
            "10.96.42.58",
        ] {
            assert!(!all.contains(absent), "{absent} with {options:?}");
        }
    }
}

#[test]
fn only_what_has_an_address_has_names_in_dns() {
    let loaded = rendered(&["--dns-filter"]);
    let table = listener(&loaded, "dns")
        .pointer("/listener_filters/0/typed_config/server_config/inline_dns_table");
    let names = table.unwrap()["virtual_domains"].as_array().unwrap().iter().map(|domain| {
        let address = &domain["endpoint"]["address_list"]["address"][0];
        format!("{} {}", domain["name"].as_str().unwrap(), address.as_str().unwrap())
    });
    let of_edge = names.filter(|name| name.contains(".edge.") || name.starts_with("reviews."));
    let expected = [
        "generated.edge.aether.internal 10.96.160.158",
        "manual.edge.aether.internal 10.96.22.5",
        "mixed.edge.aether.internal 10.96.21.206",
        // The short name is that of the application's Service.
        "reviews.aether.internal 10.96.193.223",
        "reviews.edge.aether.internal 10.96.200.91",
        "udp.edge.aether.internal 10.96.110.102",
    ];
    let of_edge: BTreeSet<String> = of_edge.filter(|name| !name.contains(".bookinfo.")).collect();
    assert_eq!(of_edge, set(&expected));
}

#[test]
fn scoped_mode_has_nothing_that_nobody_can_reach() {
    let loaded = rendered(&["--capture-mode", "scoped"]);
    let services = ["mixed", "headless", "manual", "generated", "reviews", "udp"];
    let chained = services.map(|service| chains(&loaded, service).into_iter().collect::<String>());
    let expected =
        ["", "", "cap_tcp_edge/manual_10.96.22.5", "", "", "cap_tcp_edge/udp_10.96.110.102"];
    assert_eq!(chained, expected.map(str::to_owned));
    let all = services
        .map(|service| clusters(&loaded, service).into_iter().collect::<Vec<_>>().join(" "));
    let expected =
        ["http: http::5222 http::9090", "http:", "tcp::18081", "http:", "http:", "tcp::18081"];
    assert_eq!(all, expected.map(str::to_owned));
    assert_eq!(loaded.get("clusters", "passthrough_original_dst"), None);
}
