//! Each kind of answer, and the object and field behind it.

use serde_json::json;

use super::world::{ask, end, evidence, pod, question, shop};
use crate::explain::{Explanation, Outcome, Proxy, explain};
use crate::translate::CaptureMode::{self, RedirectAll, Scoped};

/// An end in few words.
fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::NotCaptured { why } => format!("not captured: {why}"),
        Outcome::Service { service, port, endpoints, answer, .. } => {
            let ips: Vec<_> = endpoints.iter().map(|one| one.address.to_string()).collect();
            let answer = answer.clone().unwrap_or_default();
            format!("{service} {port} at {}{answer}", ips.join(" "))
        }
        Outcome::Unresolved { why } => format!("unresolved: {why}"),
        Outcome::Passthrough { to } => format!("through to {}", to.as_deref().unwrap_or("?")),
        Outcome::Answered { status, body } => format!("{status} {}", body.trim_end()),
        Outcome::Closed { why } => format!("closed: {why}"),
    }
}

/// Whether something that decided a step is this object and field.
fn because(explanation: &Explanation, object: &str, field: &str) -> bool {
    let of_paths = explanation.paths.iter().flat_map(|path| &path.steps);
    let mut all = explanation.steps.iter().chain(of_paths).flat_map(|step| &step.because);
    all.any(|one| one.object == object && one.field == field)
}

#[test]
fn every_kind_of_destination_has_its_end() {
    let web = "shop/web 80 at 10.244.0.1:8080 10.244.0.2:8080";
    let none = "503 with the body \"aether: answered by the mesh, not by the service (no_healthy_upstream): no healthy upstream\"";
    let no_port = "404 aether: answered by the mesh, not by the service (direct_response): web.shop:9 names the service shop/web, which has no such port: it has 80 and 8081";
    for (asked, expected) in [
        ("web http", web),
        ("web:18081 http", web),
        ("web.shop http", web),
        ("web.shop. http", web),
        ("WEB.shop.svc http", web),
        ("web.shop.svc.cluster.local http", web),
        ("web.shop.aether.internal http", web),
        ("web.aether.internal http", web),
        ("10.96.0.1 http", web),
        ("web.shop:8081 http", "shop/web 8081 at 10.244.0.1:8081 10.244.0.2:8081"),
        ("web.shop:9 http", no_port),
        ("web tls", "through to 10.96.0.1:80"),
        ("web.pay http", "pay/web 80 at 10.244.0.4:8080"),
        ("ledger:3306 tcp", "shop/ledger 3306 at 10.244.0.5:3306"),
        ("ledger:3306 http", "shop/ledger 3306 at 10.244.0.5:3306"),
        ("10.96.0.3:18081 tcp", "shop/ledger 3306 at 10.244.0.5:3306"),
        ("ledger:80 tcp", "closed: Service shop/ledger has no port 80: it has 3306"),
        // Nothing is ready there, so what terminates serves.
        ("mixed http", "shop/mixed 80 at 10.244.0.6:8080"),
        ("mixed:9000 tcp", "shop/mixed 9000 at 10.244.0.6:9000"),
        ("mixed:9000 tls", "shop/mixed 9000 at 10.244.0.6:9000"),
        ("peers http", "shop/peers 8080 at 10.244.0.7:8080"),
        ("peers:99 http", "through to 10.244.0.7:99"),
        ("peers:8080 tcp", "through to 10.244.0.7:8080"),
        ("a.peers http", "through to ?"),
        ("empty http", &format!("shop/empty 80 at {none}")),
        ("local http", &format!("shop/local 80 at {none}")),
        ("cased:5000 http", "shop/cased 5000 at a connection that is accepted and closed"),
        ("legacy http", "through to 10.96.0.6:80"),
        ("broken http", "through to 10.96.0.7:80"),
        ("external http", "through to ?"),
        ("nobody http", "through to ?"),
        ("example.com:443 tls", "through to ?"),
        ("nobody.aether.internal http", "unresolved: no Service here has this name"),
        ("nobody.shop.aether.internal:9 tcp", "unresolved: no Service here has this name"),
        ("nobody.pay.svc.cluster.local http", "unresolved: no Service here has this name"),
        ("nobody.pay.svc.cluster.local. tls", "unresolved: no Service here has this name"),
        ("broken.shop.aether.internal http", "unresolved: no Service here has this name"),
        (
            "peers.shop.aether.internal http",
            "unresolved: Service shop/peers has no ClusterIP, so it has no mesh name; ask for peers.shop.svc",
        ),
        ("198.51.100.7:9 tcp", "through to 198.51.100.7:9"),
        ("127.0.0.1:80 tcp", "not captured: 127.0.0.1 is a loopback address"),
        ("169.254.1.1:80 tcp", "not captured: 169.254.1.1 is a link-local address"),
        ("224.0.0.1:80 tcp", "not captured: 224.0.0.1 is a multicast address"),
        ("[fe80::1]:80 tcp", "not captured: fe80::1 is a link-local address"),
        ("[::1]:80 tcp", "not captured: ::1 is a loopback address"),
        ("web:18001 tcp", "not captured: port 18001 is that of the capture listener"),
        (
            "[fd00::1]:80 tcp",
            "closed: the pod has no IPv6 address, so its proxy does not listen on [::1]",
        ),
    ] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        assert_eq!(brief(end(&told)), expected, "{asked}");
        assert!(told.verdict.ends_with('.'), "{}", told.verdict);
    }
}

#[test]
fn where_one_port_is_captured_others_are_not() {
    for (asked, expected) in [
        ("web:80 http", "not captured: only port 18081 is captured, and not 80"),
        ("web:18081 http", "shop/web 80 at 10.244.0.1:8080 10.244.0.2:8080"),
        ("web:18081 tls", "closed: what is not HTTP gets 400 Bad Request there"),
        ("ledger:18081 tcp", "shop/ledger 3306 at 10.244.0.5:3306"),
        (
            "nobody:18081 http",
            "404 aether: answered by the mesh, not by the service (direct_response): nobody:18081 is no mesh service",
        ),
    ] {
        let told = ask(&shop(), &format!("shop/front {asked}"), Scoped);
        assert_eq!(brief(end(&told)), expected, "{asked}");
    }
}

#[test]
fn pods_may_be_outside_or_have_their_own_redirection() {
    let ports = "metadata.annotations[capture.aether.io/exclude-outbound-ports]";
    let ranges = "metadata.annotations[capture.aether.io/exclude-outbound-ip-ranges]";
    let label = "metadata.labels[aether.io/managed]";
    for (asked, expected, object, field) in [
        ("shop/out web http", "not captured: the pod is not in the mesh", "Pod shop/out", label),
        (
            "kube-system/dns web.shop http",
            "not captured: the namespace kube-system is never touched",
            "Pod kube-system/dns",
            "metadata.namespace",
        ),
        (
            "shop/hosted web http",
            "not captured: the pod is on the network of its node",
            "Pod shop/hosted",
            "spec.hostNetwork",
        ),
        (
            "shop/own web:6005 tcp",
            "not captured: the pod excludes port 6005",
            "Pod shop/own",
            ports,
        ),
        (
            "shop/own web:7000 tcp",
            "not captured: the pod excludes port 7000",
            "Pod shop/own",
            ports,
        ),
        (
            "shop/own 192.0.2.7:80 tcp",
            "not captured: the pod excludes 192.0.2.7",
            "Pod shop/own",
            ranges,
        ),
        ("shop/own 192.0.3.7:7001 tcp", "through to 192.0.3.7:7001", "option", "--capture-mode"),
        (
            "shop/wide web:80 http",
            "not captured: only port 18081 is captured, and not 80",
            "Pod shop/wide",
            "metadata.annotations[capture.aether.io/redirect-all]",
        ),
    ] {
        let told = ask(&shop(), asked, RedirectAll);
        assert_eq!(brief(end(&told)), expected, "{asked}");
        assert!(because(&told, object, field), "{asked}: {told:#?}");
    }
}

#[test]
fn what_decided_is_named_by_object_field_and_value() {
    for (asked, object, field) in [
        ("web http", "Pod shop/front", "metadata.labels[aether.io/managed]"),
        ("web http", "Service shop/web", "metadata.labels[aether.io/mesh-service]"),
        ("web http", "Service shop/web", "spec.ports[port=80].appProtocol"),
        ("web http", "EndpointSlice shop/web-1", "endpoints"),
        ("web http", "Node n1", "metadata.labels[topology.kubernetes.io/zone]"),
        ("web http", "RouteConfiguration cap_http.shop", "virtual_hosts[web.shop].domains"),
        ("ledger:3306 tcp", "Service shop/ledger", "spec.clusterIPs"),
        ("ledger:3306 tcp", "option", "--server-first-ports"),
        ("cased:5000 tcp", "Service shop/cased", "spec.clusterIPs"),
        ("local http", "Service shop/local", "spec.internalTrafficPolicy"),
        ("legacy http", "Service shop/legacy", "metadata.labels[aether.io/mesh-service]"),
        ("broken http", "Service shop/broken", "metadata.annotations[aether.io/port]"),
        ("external http", "Service shop/external", "spec.type"),
        ("web tls", "Service shop/web", "spec.ports"),
    ] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        assert!(because(&told, object, field), "{asked}: {object} {field}: {told:#?}");
    }
}

#[test]
fn what_stands_in_the_way_is_said_in_the_verdict_and_since_when() {
    for (asked, words) in [
        (
            "broken http",
            "Service shop/broken is quarantined since 2026-11-30T12:00:00Z: \"0\" is no port",
        ),
        ("external http", "Service shop/external is not captured since"),
        ("legacy http", "lacks the label aether.io/mesh-service=true"),
        ("10.96.0.7 http", "Service shop/broken is quarantined since"),
    ] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        assert!(told.verdict.contains(words), "{asked}: {}", told.verdict);
    }
    let told = ask(&shop(), "shop/front web.aether.internal http", RedirectAll);
    let notes =
        told.steps.iter().flat_map(|step| &step.notes).cloned().collect::<Vec<_>>().join("\n");
    for words in ["this name is ambiguous: Service pay/web claims it too", "which is older"] {
        assert!(notes.contains(words), "{notes}");
    }
    let told = ask(&shop(), "shop/front api http", RedirectAll);
    assert!(!told.verdict.contains("quarantined"), "{}", told.verdict);
}

#[test]
fn a_bare_name_of_another_namespace_is_told_how_to_write_it() {
    let mut world = shop();
    world.push(pod("pay", "till", json!({})));
    let told = ask(&world, "pay/till ledger http", RedirectAll);
    let notes =
        told.steps.iter().flat_map(|step| &step.notes).cloned().collect::<Vec<_>>().join("\n");
    assert!(notes.contains("ask for ledger.shop"), "{notes}");
}

#[test]
fn a_scoped_pod_is_told_of_its_annotation() {
    let mut world = shop();
    let listed = json!({"metadata": {"annotations": {"config.aether.io/upstreams": "ledger"}}});
    world.push(pod("shop", "narrow", listed));
    let told = ask(&world, "shop/narrow web http", RedirectAll);
    let field = "metadata.annotations[config.aether.io/upstreams]";
    assert!(because(&told, "Pod shop/narrow", field), "{told:#?}");
    let told = ask(&world, "shop/narrow ledger:3306 tcp", RedirectAll);
    assert!(!because(&told, "Pod shop/narrow", field), "{told:#?}");
}

#[test]
fn a_pod_that_is_not_known_is_an_error_that_names_near_ones() {
    for (asked, words) in [
        ("shop/fronts web", "did you mean shop/front?"),
        ("pay/front web", "did you mean shop/front?"),
        ("zoo/elephant web", "no pod zoo/elephant is known: write --pod"),
    ] {
        let question = question(asked);
        let evidence = evidence(&shop(), &question, CaptureMode::RedirectAll);
        let error = explain(&question, &evidence).unwrap_err().to_string();
        assert!(error.contains(words), "{asked}: {error}");
    }
}

#[test]
fn a_proxy_that_refuses_is_told_of_with_its_words() {
    let question = question("shop/front web http");
    let mut evidence = evidence(&shop(), &question, RedirectAll);
    let told = |evidence: &crate::explain::Evidence| explain(&question, evidence).unwrap();
    assert!(!told(&evidence).verdict.contains("proxy refuses"));
    evidence.proxy = Some(Proxy::default());
    let notes = told(&evidence).steps[0].notes.join("\n");
    assert!(notes.contains("not connected to this server"), "{notes}");
    let at = "2026-11-30T12:00:00Z".parse().unwrap();
    let refused = vec![("LDS".to_owned(), at, "cannot bind".to_owned())];
    evidence.proxy = Some(Proxy { connected: true, refused });
    let verdict = told(&evidence).verdict;
    let words = "refuses what it is sent of LDS since 2026-11-30T12:00:00Z, and may do as it did before: cannot bind.";
    assert!(verdict.ends_with(words), "{verdict}");
}
