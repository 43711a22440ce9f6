//! Names that do not resolve, names that nobody here can tell of, and names by `dns_filter`.

use super::world::{ask, end, evidence_with, question, shop};
use crate::explain::{Explanation, Outcome, explain};
use crate::translate::CaptureMode::{RedirectAll, Scoped};
use crate::translate::{DnsFilter, Settings};

#[test]
fn a_name_that_does_not_resolve_leads_nowhere_in_either_mode() {
    for mode in [RedirectAll, Scoped] {
        let told = ask(&shop(), "shop/front nobody.shop.aether.internal", mode);
        assert_eq!(
            told.verdict,
            "It goes nowhere, since the name does not resolve: no Service here has this name."
        );
        assert!(matches!(end(&told), Outcome::Unresolved { .. }), "{told:#?}");
    }
    // What stands in the way of the Service that would bear the name is said beside it.
    let told = ask(&shop(), "shop/front broken.shop.aether.internal http", RedirectAll);
    assert!(told.verdict.contains("Service shop/broken is quarantined since"), "{}", told.verdict);
}

#[test]
fn of_a_name_that_the_cluster_decides_that_is_said() {
    for (asked, name) in [("nobody http", "nobody"), ("example.com:443 tls", "example.com")] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        let clause = format!(
            "But {name} is no name of the mesh or of the cluster's Services: whether it resolves at all, the DNS of the cluster decides."
        );
        assert!(told.verdict.contains(&clause), "{}", told.verdict);
    }
    for asked in ["web http", "legacy http", "a.peers http", "198.51.100.7:9 tcp"] {
        let told = ask(&shop(), &format!("shop/front {asked}"), RedirectAll);
        assert!(!told.verdict.contains("decides"), "{asked}: {}", told.verdict);
    }
}

/// The answer where `dns_filter` answers the pods.
fn by_filter(upstream: &[&str], asked: &str) -> Explanation {
    let question = question(&format!("shop/front {asked}"));
    let upstream = upstream.iter().map(|server| server.parse().unwrap()).collect();
    let settings = Settings { dns: Some(DnsFilter { upstream }), ..Settings::default() };
    explain(&question, &evidence_with(&shop(), &question, &settings, None)).unwrap()
}

/// What the step says of the name.
fn said(told: &Explanation) -> &str {
    &told.steps[1].says
}

#[test]
fn names_by_the_filter_are_those_of_its_own_table() {
    for name in ["web.shop.aether.internal", "web.aether.internal"] {
        let told = by_filter(&[], name);
        let words =
            "is a name of the mesh, which dns_filter, in the proxy itself, answers with 10.96.0.1";
        assert_eq!(said(&told), format!("{name} {words}"));
    }
    let told = by_filter(&[], "nobody.shop.aether.internal");
    assert!(matches!(end(&told), Outcome::Unresolved { .. }), "{told:#?}");
}

#[test]
fn other_names_by_the_filter_need_an_upstream() {
    let asked = "web.shop.svc.cluster.local";
    let told = by_filter(&["10.96.0.10:53"], asked);
    let words = "is Service shop/web; the cluster's DNS answers it with 10.96.0.1";
    assert_eq!(said(&told), format!("{asked} {words}"));
    for name in [asked, "web", "web.shop.svc", "example.com"] {
        let told = by_filter(&[], name);
        let Outcome::Unresolved { why } = end(&told) else { panic!("{name}: {told:#?}") };
        assert!(why.ends_with("with --dns-upstream"), "{why}");
    }
}
